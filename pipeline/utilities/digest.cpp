#include "headrace/pipeline/digest.h"

#include <algorithm>
#include <cstring>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace {

StreamDigest::StreamDigest(DeviceGroup& devices, std::optional<int> first_share)
    : devices_(devices), first_share_(first_share) {
  if (first_share) share_.resize(static_cast<std::size_t>(devices.size()));
  for (int r = 0; r < devices.size(); ++r) {
    streams_.push_back(devices[r].info().host_memory ? nullptr : devices[r].create_stream());
  }
}

std::optional<BatchDigest> StreamDigest::next(Loader& loader) {
  loader.state();  // refuses replayed batches: they have no identity
  in_order_ = in_order_ && loader.in_order();
  std::vector<Batch> shares;
  for (int r = 0; r < devices_.size(); ++r) {
    std::optional<Batch> batch = loader.next(r);
    if (!batch) return std::nullopt;
    shares.push_back(std::move(*batch));
  }
  return add(shares);
}

std::string StreamDigest::finish() {
  if (!in_order_) {
    throw ConfigError("batches in any order have no digest as a stream: their order depends on timing",
                      joined({advice("leave out {}", named("LoaderOptions::in_order", "false")),
                              "compare the digests of single batches"}));
  }
  return stream_.finish_hex();
}

BatchDigest StreamDigest::add(std::span<const Batch> shares) {
  const Batch& first = shares.front();
  const Fields& fields = first.fields();
  const std::uint64_t epoch = first.position().epoch, step = first.position().step;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string type = to_string(first.tensors()[i].dtype), shape = fields[i].shape.to_string();
    batch_.update(fields[i].name).update(type).update(shape);
    for (std::size_t r = 0; r < shares.size(); ++r) {
      const std::span<const std::byte> rows = rows_of(shares[r], i, r);
      batch_.update(rows);
      if (first_share_) share_[r].update(fields[i].name).update(type).update(shape).update(rows);
    }
  }
  shares_.clear();
  for (std::size_t r = 0; r < share_.size(); ++r) {
    shares_.push_back({.epoch = epoch,
                       .step = step,
                       .replica = *first_share_ + static_cast<int>(r),
                       .sha256 = share_[r].finish_hex()});
  }
  BatchDigest digest{
      .epoch = epoch, .step = step, .examples = first.position().global_examples, .sha256 = batch_.finish_hex()};
  stream_.update(digest.sha256);
  return digest;
}

// On the host, valid until the next call.
std::span<const std::byte> StreamDigest::rows_of(const Batch& batch, std::size_t field, std::size_t replica) {
  const std::int64_t entries = batch.entries(field);
  if (batch.examples() == 0 || entries == 0) return {};
  batch.ready().wait();
  const TensorView& tensor = batch.tensors()[field];
  const std::size_t bytes =
      tensor.bytes() / static_cast<std::size_t>(tensor.shape[0]) * static_cast<std::size_t>(entries);
  const std::byte* rows = tensor.as<std::byte>();
  if (const auto& stream = streams_[replica]; stream != nullptr) {
    host_.resize(bytes);
    stream->copy(host_.data(), rows, bytes);
    stream->synchronize();
    rows = host_.data();
  }
  const bool counts = std::ranges::find(batch.ragged(), field, &RaggedTensor::offsets) != batch.ragged().end();
  return counts ? lengths_in({rows, bytes}) : std::span(rows, bytes);
}

// Offsets begin anew in each replica's part; lengths are the same for any number of replicas.
std::span<const std::byte> StreamDigest::lengths_in(std::span<const std::byte> offsets) {
  std::vector<std::int64_t> numbers(offsets.size() / sizeof(std::int64_t));
  std::memcpy(numbers.data(), offsets.data(), offsets.size());
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) numbers[i] = numbers[i + 1] - numbers[i];
  numbers.pop_back();
  const std::span<const std::byte> lengths = std::as_bytes(std::span(numbers));
  host_.assign(lengths.begin(), lengths.end());
  return host_;
}

}  // namespace headrace
