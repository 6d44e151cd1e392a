#include "headrace/pipeline/digest.h"

namespace headrace {

StreamDigest::StreamDigest(DeviceGroup& devices) : devices_(devices) {
  for (int r = 0; r < devices.size(); ++r) {
    streams_.push_back(devices[r].info().host_memory ? nullptr : devices[r].create_stream());
  }
}

std::optional<BatchDigest> StreamDigest::next(Loader& loader) {
  loader.state();  // refuses replayed batches: they have no identity
  std::vector<Batch> shares;
  for (int r = 0; r < devices_.size(); ++r) {
    std::optional<Batch> batch = loader.next(r);
    if (!batch) return std::nullopt;
    shares.push_back(std::move(*batch));
  }
  return add(shares);
}

BatchDigest StreamDigest::add(std::span<const Batch> shares) {
  const Batch& first = shares.front();
  const Fields& fields = first.fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    batch_.update(fields[i].name).update(to_string(first.tensors()[i].dtype)).update(fields[i].shape.to_string());
    for (std::size_t r = 0; r < shares.size(); ++r) add_rows(shares[r], i, static_cast<int>(r));
  }
  BatchDigest digest{.epoch = first.position().epoch,
                     .step = first.position().step,
                     .examples = first.position().global_examples,
                     .sha256 = batch_.finish_hex()};
  stream_.update(digest.sha256);
  return digest;
}

void StreamDigest::add_rows(const Batch& batch, std::size_t field, int replica) {
  if (batch.examples() == 0) return;
  batch.ready().wait();
  const TensorView& tensor = batch.tensors()[field];
  const std::size_t bytes =
      tensor.bytes() / static_cast<std::size_t>(tensor.shape[0]) * static_cast<std::size_t>(batch.examples());
  const std::byte* rows = tensor.as<std::byte>();
  if (const auto& stream = streams_[static_cast<std::size_t>(replica)]; stream != nullptr) {
    host_.resize(bytes);
    stream->copy(host_.data(), rows, bytes);
    stream->synchronize();
    rows = host_.data();
  }
  batch_.update(std::span(rows, bytes));
}

}  // namespace headrace
