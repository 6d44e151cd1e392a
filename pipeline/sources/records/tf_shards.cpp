// TFRecord files as a stream of shards: nothing is read before its turn comes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/sources/bytes.h"
#include "headrace/pipeline/sources/records/file_shards.h"
#include "headrace/pipeline/sources/records/tf_records.h"

namespace headrace {
namespace {

class TfShards final : public FileShards {
 public:
  TfShards(std::string name, FoundShards shards, const TfRecordOptions& options);

  std::unique_ptr<ShardReader> open_shard(std::size_t shard, std::uint64_t offset) const override;
  std::unique_ptr<ShardReader> open_part(std::size_t shard, const ByteExtent& part) const override;

 private:
  class Reader;

  void choose_fields();
  void learn_from(std::span<const std::byte> payload);

  TfRecordOptions options_;
  std::vector<TfField> fields_;
  std::size_t number_bytes_ = 0;  // of a record
};

// One file, record after record.
class TfShards::Reader final : public ShardReader {
 public:
  Reader(const TfShards& set, std::size_t shard, std::uint64_t offset)
      : set_(set), name_(set.files_.path(shard).string()) {
    in_shard(name_, [&] {
      const std::filesystem::path& path = set.files_.path(shard);
      const Packing packing = offset > 0 ? Packing::kPlain : tf_packing(path).value_or(packing_of(path));
      is_plain_ = packing == Packing::kPlain;
      input_ = is_plain_ ? std::make_unique<FileInput>(path, offset)
                         : open_input(path, packing, set.options_.memory_limit);
    });
  }
  Reader(const TfShards& set, std::size_t shard, const ByteExtent& part)
      : set_(set), name_(set.files_.path(shard).string()) {
    in_shard(name_,
             [&] { input_ = std::make_unique<BytesInput>(name_, part.offset, set.files_.read(shard, part)); });
  }

  std::optional<RecordView> next(std::vector<std::byte>& buffer) override {
    const std::optional<std::size_t> size = read_frame(buffer);
    if (!size) return std::nullopt;
    const std::span<const std::byte> payload = payload_of(buffer, *size);
    try {
      return parse_tf_example(payload, set_.fields_,
                              std::span(buffer).subspan(buffer.size() - set_.number_bytes_));
    } catch (const Error& error) {
      fail_record(error.message(), error.hint());
    }
  }
  // Returns the next record's payload; std::nullopt at the end.
  std::optional<std::span<const std::byte>> next_payload(std::vector<std::byte>& buffer) {
    const std::optional<std::size_t> size = read_frame(buffer);
    if (!size) return std::nullopt;
    return payload_of(buffer, *size);
  }
  void read_ahead(std::uint64_t bytes_before) override { input_->read_ahead(bytes_before); }
  std::uint64_t offset() const noexcept override {
    if (!is_plain_) return 0;
    return input_->max_left() == 0 ? kEnd : input_->position();
  }

 private:
  [[noreturn]] void fail_file(const std::string& what) const {
    throw Error(ErrorCode::kDataCorrupt, fmt::format("{}, offset {}: {}", name_, begin_, what),
                "copy or download the file again");
  }
  [[noreturn]] void fail_record(const std::string& what, const std::string& hint) const {
    throw DataError(ErrorCode::kDataCorrupt, what, {.source = name_, .offset = begin_}, hint);
  }

  // Reads payload and footer to the front of `buffer`, with room for the numbers at its end; returns their size.
  std::optional<std::size_t> read_frame(std::vector<std::byte>& buffer) {
    std::optional<std::size_t> size;
    in_shard(name_, [&] {
      begin_ = input_->position();
      std::array<std::byte, tf_frame::kHeader> header{};
      const std::size_t count = input_->read(header);
      if (count == 0) return;
      if (count < header.size()) fail_file("the file ends within a record's header: it was cut off");
      if (!tf_frame::header_holds(header)) fail_file("the checksum of a record's length does not hold");
      const std::uint64_t bytes = little_endian(header, 0, 8), left = input_->max_left();
      if (left < tf_frame::kFooter || bytes > left - tf_frame::kFooter) {
        fail_file(fmt::format("a record of {} bytes, more than the file has left: it was cut off", bytes));
      }
      if (bytes > set_.options_.memory_limit) {
        throw Error(ErrorCode::kOutOfMemory, fmt::format("{}: a record has {} bytes", name_, bytes),
                    advice("raise {}", named("TfRecordOptions::memory_limit")));
      }
      size = static_cast<std::size_t>(bytes + tf_frame::kFooter);
      constexpr std::size_t kAlignment = 16;
      buffer.resize((*size + kAlignment - 1) / kAlignment * kAlignment + set_.number_bytes_);
      input_->read_exact(std::span(buffer).first(*size), "a record");
    });
    return size;
  }
  std::span<const std::byte> payload_of(std::span<const std::byte> buffer, std::size_t size) const {
    if (!tf_frame::payload_holds(buffer.first(size))) {
      fail_record("the checksum of a record's bytes does not hold", "copy the file again");
    }
    return buffer.first(size - tf_frame::kFooter);
  }

  const TfShards& set_;
  std::string name_;
  std::unique_ptr<ByteInput> input_;
  bool is_plain_ = true;
  std::uint64_t begin_ = 0;  // of the latest record
};

TfShards::TfShards(std::string name, FoundShards shards, const TfRecordOptions& options)
    : FileShards(std::move(name), std::move(shards)), options_(options) {
  info_.classes = options_.classes;
  info_.label_count = options_.label_count;
  choose_fields();
  Fingerprint fingerprint = fingerprint_of("tf shards 1");
  for (const std::string& key : options_.image_keys) fingerprint.add(key);
  for (const std::string& key : options_.label_keys) fingerprint.add(key);
  for (const std::string& one : options_.classes) fingerprint.add(one);
  for (const Field& field : info_.fields) fingerprint.add(field);
  info_.fingerprint = fingerprint.value();
}

void TfShards::learn_from(std::span<const std::byte> payload) {
  try {
    TfFields those = tf_fields(options_, payload, info_.name);
    fields_ = std::move(those.fields);
    info_.columns = std::move(those.columns);
  } catch (const ConfigError&) {
    throw;
  } catch (const Error&) {  // a bad record
  }
}

// By the first record that can be read.
void TfShards::choose_fields() {
  constexpr int kTried = 256;
  const remote::Hold hold;
  const remote::Look look;
  fields_ = tf_fields(options_);
  std::vector<std::byte> scratch;
  int tried = 0;
  for (std::size_t file = 0; file < files_.size() && tried < kTried && info_.columns.empty(); ++file) {
    Reader reader(*this, file, 0);
    for (bool more = true; more && tried < kTried && info_.columns.empty(); ++tried) {
      std::optional<std::span<const std::byte>> payload;
      try {
        payload = reader.next_payload(scratch);
        more = payload.has_value();
      } catch (const DataError&) {  // a bad record
      }
      if (payload) learn_from(*payload);
    }
  }
  if (info_.columns.empty() && !options_.feature_keys.empty()) {
    throw DataError(ErrorCode::kDataCorrupt, "none of its first records can be read: their features are not known",
                    {.source = info_.name}, "copy the files again");
  }
  for (const TfField& field : fields_) info_.fields.push_back(field.field);
  number_bytes_ = number_bytes(fields_);
}

std::unique_ptr<ShardReader> TfShards::open_shard(std::size_t shard, std::uint64_t offset) const {
  return std::make_unique<Reader>(*this, shard, offset);
}

std::unique_ptr<ShardReader> TfShards::open_part(std::size_t shard, const ByteExtent& part) const {
  return std::make_unique<Reader>(*this, shard, part);
}

}  // namespace

SourcePtr tf_shards(std::string name, FoundShards shards, const TfRecordOptions& options) {
  return std::make_shared<TfShards>(std::move(name), std::move(shards), options);
}

}  // namespace headrace
