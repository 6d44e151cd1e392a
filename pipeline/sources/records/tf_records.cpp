#include "headrace/pipeline/sources/records/tf_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/sources/bytes.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/records/tf_example.h"
#include "headrace/pipeline/sources/sample_table.h"
#include "headrace/pipeline/sources/side_by_side.h"

namespace headrace {
namespace {

constexpr std::uint64_t kRecordHeader = tf_frame::kHeader, kFooter = tf_frame::kFooter;

std::size_t align(std::uint64_t size) { return static_cast<std::size_t>((size + 15) / 16 * 16); }

}  // namespace

bool tf_frame::header_holds(std::span<const std::byte> header) {
  return little_endian(header, 8, 4) == mask_crc32c(crc32c(header.first(8)));
}

bool tf_frame::payload_holds(std::span<const std::byte> payload_and_footer) {
  const std::span<const std::byte> payload = payload_and_footer.first(payload_and_footer.size() - kFooter);
  return little_endian(payload_and_footer, payload.size(), kFooter) == mask_crc32c(crc32c(payload));
}

std::optional<Packing> tf_packing(const std::filesystem::path& path) {
  const std::vector<std::byte> start = first_bytes(path);
  if (start.size() < kRecordHeader + kFooter) return std::nullopt;
  if (tf_frame::header_holds(std::span(start).first(kRecordHeader))) return Packing::kPlain;
  Packing packing = packing_of(path);
  if (packing == Packing::kPlain) {
    if ((start[0] & std::byte{0x0F}) != std::byte{8}) return std::nullopt;  // not deflated data in a zlib wrapper
    packing = Packing::kZlib;
  }
  std::array<std::byte, kRecordHeader> header{};
  try {
    if (open_input(path, packing)->read(header) == kRecordHeader && tf_frame::header_holds(header)) return packing;
  } catch (const DataError&) {  // not zlib's, or damaged: left to the format's reader to report
  }
  return std::nullopt;
}

bool is_tf_record(const std::filesystem::path& path) { return tf_packing(path).has_value(); }

struct TfRecords::Index {
  std::string path = {};
  std::vector<Extent> extents = {};
  ByteSlabs slabs = ByteSlabs();
  bool packed = false;

  [[noreturn]] void fail_at(std::uint64_t offset, const std::string& what, const std::string& hint = {}) const {
    throw DataError(ErrorCode::kDataCorrupt, what, {.source = path, .record = extents.size(), .offset = offset},
                    hint.empty() ? "copy or download the file again" : hint);
  }
};

TfRecords::TfRecords(std::string name, FoundShards shards, const TfRecordOptions& options)
    : files_(std::move(shards.paths)), options_(options) {
  info_.name = std::move(name);
  info_.reading = std::move(shards.reading);
  info_.left_out = std::move(shards.left_out);
  info_.classes = options_.classes;
  info_.label_count = options_.label_count;
  info_.resident = true;
  const remote::Hold hold;
  std::vector<std::optional<Index>> found(files_.size());
  read_side_by_side(
      files_.size(), files_.is_remote(), [&](std::size_t file) { found[file] = index_file(file); },
      [&](std::size_t file) {
        Index index = *std::exchange(found[file], std::nullopt);
        extents_.insert(extents_.end(), index.extents.begin(), index.extents.end());
        info_.file_ends.push_back(extents_.size());
        info_.resident = info_.resident && index.packed;
        if (index.packed) slabs_.push_back(std::move(index.slabs));
      });
  info_.records = extents_.size();
  choose_fields();
  Fingerprint fingerprint("tf records 1");
  for (const std::string& key : options_.image_keys) fingerprint.add(key);
  for (const std::string& key : options_.label_keys) fingerprint.add(key);
  for (const std::string& one : options_.classes) fingerprint.add(one);
  for (const Extent& extent : extents_) {
    fingerprint.add(extent.size);
    if (extent.bytes != nullptr) fingerprint.add(std::span(extent.bytes, static_cast<std::size_t>(extent.size)));
  }
  for (const Field& field : info_.fields) {
    const bool usual = field == labelled_image_fields().front() || field == labelled_image_fields().back();
    if (!usual) fingerprint.add(field);
  }
  info_.fingerprint = fingerprint.value();
  info_.revision = files_.revision();
  if (info_.resident) keep_numbers();
}

void TfRecords::choose_fields() {
  constexpr std::uint64_t kTried = 256;
  fields_ = tf_fields(options_);
  std::vector<std::byte> scratch;
  bool found = false;
  for (std::uint64_t i = 0; !found && i < std::min(info_.records, kTried); ++i) {
    try {
      TfFields those = tf_fields(options_, payload(i, scratch), info_.name);
      fields_ = std::move(those.fields);
      info_.columns = std::move(those.columns);
      found = true;
    } catch (const ConfigError&) {
      throw;
    } catch (const Error&) {  // a bad record
    }
  }
  if (!found && !options_.feature_keys.empty()) {
    throw DataError(ErrorCode::kDataCorrupt, "none of its first records can be read: their features are not known",
                    {.source = info_.name}, "copy the files again");
  }
  for (const TfField& field : fields_) info_.fields.push_back(field.field);
  number_bytes_ = number_bytes(fields_);
}

std::uint64_t TfRecords::length_in(std::span<const std::byte> header, const Index& index, std::uint64_t offset,
                                   std::uint64_t left) const {
  if (!tf_frame::header_holds(header)) {
    if (offset == 0) index.fail_at(offset, "is no TFRecord file", accepted_formats());
    index.fail_at(offset, "the checksum of a record's length does not hold", "copy the file again");
  }
  const std::uint64_t size = little_endian(header, 0, 8);
  if (left < kFooter || size > left - kFooter) {
    index.fail_at(offset, fmt::format("a record of {} bytes where the file has {} left: it was cut off", size,
                                      left < kFooter ? 0 : left - kFooter));
  }
  return size;
}

TfRecords::Index TfRecords::index_file(std::size_t file) {
  const std::filesystem::path& path = files_.path(file);
  const KeptIndex kept(path, "tfrecord 1");
  Index index{.path = path.string(), .slabs = slabs_for(files_.bytes(file))};
  if (take_kept(file, kept, index)) return index;
  const Packing packing = tf_packing(path).value_or(packing_of(path));
  index.packed = packing != Packing::kPlain;
  if (index.packed) {
    index_packed(file, packing, index);
    return index;
  }
  index_plain(file, index);
  ByteWriter sizes;
  for (const Extent& extent : index.extents) sizes.u64(extent.size);
  kept.keep(sizes.bytes());
  return index;
}

bool TfRecords::take_kept(std::size_t file, const KeptIndex& kept, Index& index) const {
  const std::optional<std::vector<std::byte>> sizes = kept.find();
  if (!sizes) return false;
  ByteReader reader(*sizes, index.path, 0);
  std::uint64_t offset = 0;
  while (reader.left() >= sizeof offset) {
    const std::uint64_t size = reader.u64();
    index.extents.push_back({.offset = offset + kRecordHeader, .size = size, .bytes = nullptr});
    offset += kRecordHeader + size + kFooter;
  }
  if (offset != files_.bytes(file)) index.extents.clear();
  return offset == files_.bytes(file);
}

void TfRecords::index_plain(std::size_t file, Index& index) const {
  const std::uint64_t end = files_.bytes(file);
  std::array<std::byte, kRecordHeader> header{};
  for (std::uint64_t offset = 0; offset < end;) {
    if (end - offset < kRecordHeader + kFooter) {
      index.fail_at(offset, "the file ends within a record's header: it was cut off");
    }
    files_.read_exact(file, offset, header);
    const std::uint64_t size = length_in(header, index, offset, end - offset - kRecordHeader);
    index.extents.push_back({.offset = offset + kRecordHeader, .size = size, .bytes = nullptr});
    offset += kRecordHeader + size + kFooter;
  }
}

void TfRecords::index_packed(std::size_t file, Packing packing, Index& index) {
  const std::unique_ptr<ByteInput> input = open_input(files_.path(file), packing, options_.memory_limit);
  std::array<std::byte, kRecordHeader> header{};
  for (;;) {
    const std::uint64_t offset = input->position();
    const std::size_t count = input->read(header);
    if (count == 0) return;
    if (count < kRecordHeader) index.fail_at(offset, "the file ends within a record's header: it was cut off");
    const std::uint64_t size = length_in(header, index, offset, input->max_left()), limit = options_.memory_limit;
    const std::uint64_t bytes = size + kFooter;
    if (bytes > limit || in_memory_.fetch_add(bytes) + bytes > limit) {
      throw DataError(ErrorCode::kOutOfMemory,
                      fmt::format("its records do not fit into {} MiB of memory", limit >> 20),
                      {.source = index.path, .offset = offset},
                      joined({"unpack the files, which are read from the disk then",
                              advice("raise {}", named("TfRecordOptions::memory_limit"))}));
    }
    const std::span<std::byte> kept = index.slabs.allocate(static_cast<std::size_t>(bytes));
    input->read_exact(kept, "a record");
    index.extents.push_back({.offset = offset + kRecordHeader, .size = size, .bytes = kept.data()});
  }
}

// Kept numbers are parsed at every read, too: a bad record is reported there.
void TfRecords::keep_numbers() {
  numbers_.resize(extents_.size() * number_bytes_);
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    try {
      parse_tf_example({extents_[i].bytes, static_cast<std::size_t>(extents_[i].size)}, fields_,
                       std::span(numbers_).subspan(i * number_bytes_, number_bytes_));
    } catch (const Error&) {
    }
  }
}

std::size_t TfRecords::file_of(std::uint64_t index) const noexcept {
  return static_cast<std::size_t>(std::ranges::upper_bound(info_.file_ends, index) - info_.file_ends.begin());
}

// Returns payload and footer, in memory or in `scratch`, with room for the numbers after them.
std::span<const std::byte> TfRecords::fetch(std::uint64_t index, std::vector<std::byte>& scratch) const {
  const Extent& extent = extents_[index];
  const auto size = static_cast<std::size_t>(extent.size + kFooter);
  if (info_.resident) return {extent.bytes, size};
  if (scratch.size() < align(size) + number_bytes_) scratch.resize(align(size) + number_bytes_);
  if (extent.bytes != nullptr) {
    std::memcpy(scratch.data(), extent.bytes, size);
  } else {
    files_.read_exact(file_of(index), extent.offset, std::span(scratch).first(size));
  }
  return std::span<const std::byte>(scratch).first(size);
}

void TfRecords::fail_record(std::uint64_t index, ErrorCode code, const std::string& what,
                            const std::string& hint) const {
  throw DataError(code, fmt::format("{}: {}", describe(index), what),
                  {.source = info_.name, .record = index, .offset = extents_[index].offset}, hint);
}

std::span<const std::byte> TfRecords::payload(std::uint64_t index, std::vector<std::byte>& scratch) const {
  std::span<const std::byte> record;
  try {
    record = fetch(index, scratch);
  } catch (const DataError& error) {
    fail_record(index, error.code(), "cannot be read", error.message());
  }
  const std::span<const std::byte> payload = record.first(record.size() - kFooter);
  if (!tf_frame::payload_holds(record)) {
    fail_record(index, ErrorCode::kDataCorrupt, "the checksum of its bytes does not hold", "copy the file again");
  }
  return payload;
}

RecordView TfRecords::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  const std::span<const std::byte> example = payload(index, scratch);
  try {
    if (!info_.resident) {
      return parse_tf_example(example, fields_,
                              std::span(scratch).subspan(align(example.size() + kFooter), number_bytes_));
    }
    BorrowedBytes parsed;
    (*parsed).resize(number_bytes_);
    RecordView view = parse_tf_example(example, fields_, *parsed);
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const std::span<const std::byte> field = view.fields[i];
      if (lies_in_payload(fields_[i].field)) continue;
      const auto at = static_cast<std::size_t>(field.data() - (*parsed).data());
      view.fields[i] = std::span(numbers_).subspan(index * number_bytes_ + at, field.size());
    }
    return view;
  } catch (const Error& error) {
    fail_record(index, error.code(), error.message(), error.hint());
  }
}

void TfRecords::will_read(std::span<const std::uint64_t> records) const {
  if (info_.resident || !files_.is_remote()) return;
  if (records.empty()) return files_.forget();
  std::map<std::size_t, std::vector<ByteExtent>> extents;  // by file
  for (const std::uint64_t record : records) {
    if (extents_[record].bytes == nullptr)
      extents[file_of(record)].push_back(
          ByteExtent{.offset = extents_[record].offset, .size = extents_[record].size + kFooter});
  }
  for (const auto& [file, those] : extents) files_.will_read(file, those);
}

std::string TfRecords::describe(std::uint64_t index) const {
  const std::size_t file = file_of(index);
  return fmt::format("{}[{}]", files_.path(file).filename().string(),
                     index - (file == 0 ? 0 : info_.file_ends[file - 1]));
}

bool is_tf_shard(const std::filesystem::path& path) {
  static const std::string kEndings[] = {".tfrecord",     ".tfrecords",     ".tfrecord.gz",
                                         ".tfrecords.gz", ".tfrecord.zlib", ".tfrecord.zst"};
  if (has_ending(path, kEndings)) return true;
  const std::optional<ShardName> shard = parse_shard_name(path.filename().string());
  return shard && shard->ending.empty() && is_tf_record(path);
}

namespace {

SourcePtr opened_tf(std::string name, FoundShards shards, const TfRecordOptions& options) {
  if (!options.indexed) return tf_shards(std::move(name), std::move(shards), options);
  return std::make_shared<TfRecords>(std::move(name), std::move(shards), options);
}

}  // namespace

SourcePtr tf_records(const std::filesystem::path& path, TfRecordOptions options) {
  if (path_kind(path) != PathKind::kDirectory) return tf_records(std::vector{path}, std::move(options));
  FoundShards files = find_shards(path, is_tf_shard, options.split, options.layout);
  if (files.paths.empty()) {
    throw DataError(ErrorCode::kNotFound, "has no .tfrecord file", {.source = path.string()},
                    "name the files themselves where they are called otherwise");
  }
  TfRecordsCall call{{{path}, options}};
  return opened_by(std::move(call), opened_tf(path.string(), std::move(files), options));
}

SourcePtr tf_records(std::vector<std::filesystem::path> files, TfRecordOptions options) {
  if (files.empty()) throw ConfigError("tf_records() was given no files");
  std::string name = files.front().string();
  if (files.size() > 1) name += fmt::format(" and {} more", files.size() - 1);
  TfRecordsCall call{{files, options}};
  return opened_by(std::move(call), opened_tf(std::move(name), {.paths = std::move(files)}, options));
}

}  // namespace headrace
