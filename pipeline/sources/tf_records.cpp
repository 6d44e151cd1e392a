#include "headrace/pipeline/sources/tf_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources/crc32c.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/sample_table.h"
#include "headrace/pipeline/sources/tf_example.h"

namespace headrace {
namespace {

// Before the payload its length (u64) and the length's checksum (u32), after it the payload's checksum; all
// little-endian.
constexpr std::uint64_t kHeader = 12, kFooter = 4;

std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

bool header_holds(std::span<const std::byte> header) {
  return number_at(header, 8, 4) == mask_crc32c(crc32c(header.first(8)));
}

std::size_t align(std::uint64_t size) { return static_cast<std::size_t>((size + 15) / 16 * 16); }

}  // namespace

bool is_tf_record(const std::filesystem::path& path) {
  const File file = File::open(path);
  std::array<std::byte, kHeader> header{};
  if (file.size() < kHeader + kFooter) return false;
  file.read_exact(0, header);
  return header_holds(header);
}

TfRecords::TfRecords(std::string name, std::vector<std::filesystem::path> files, TfRecordOptions options)
    : files_(std::move(files)), options_(std::move(options)) {
  info_.name = std::move(name);
  info_.fields = labelled_image_fields();
  info_.classes = options_.classes;
  info_.label_count = options_.label_count;
  for (std::size_t file = 0; file < files_.size(); ++file) {
    index_file(file);
    info_.file_ends.push_back(extents_.size());
  }
  info_.records = extents_.size();
  Fingerprint fingerprint("tf records 1");
  for (const std::string& key : options_.image_keys) fingerprint.add(key);
  for (const std::string& key : options_.label_keys) fingerprint.add(key);
  for (const std::string& one : options_.classes) fingerprint.add(one);
  for (const Extent& extent : extents_) fingerprint.add(extent.size);
  info_.fingerprint = fingerprint.value();
  info_.revision = files_.revision();
}

void TfRecords::index_file(std::size_t file) {
  const std::uint64_t end = files_.bytes(file);
  std::array<std::byte, kHeader> header{};
  for (std::uint64_t offset = 0; offset < end;) {
    const auto fail = [&](const std::string& what, const std::string& hint = {}) {
      throw DataError(ErrorCode::kDataCorrupt, what,
                      {.source = files_.path(file).string(),
                       .record = extents_.size() - (file == 0 ? 0 : info_.file_ends[file - 1]),
                       .offset = offset},
                      hint);
    };
    if (end - offset < kHeader + kFooter) fail("the file ends within a record's header: it was cut off");
    files_.read_exact(file, offset, header);
    if (!header_holds(header)) {
      fail(offset == 0 ? "is no TFRecord file" : "the checksum of a record's length does not hold",
           offset == 0 ? "a compressed one must be unpacked first: it cannot be read by position" : "");
    }
    const std::uint64_t size = number_at(header, 0, 8);
    if (size > end - offset - kHeader - kFooter) {
      fail(fmt::format("a record of {} bytes where the file has {} left: it was cut off", size,
                       end - offset - kHeader - kFooter));
    }
    extents_.push_back({.offset = offset + kHeader, .size = size});
    offset += kHeader + size + kFooter;
  }
}

std::size_t TfRecords::file_of(std::uint64_t index) const noexcept {
  return static_cast<std::size_t>(std::ranges::upper_bound(info_.file_ends, index) - info_.file_ends.begin());
}

RecordView TfRecords::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  const Extent& extent = extents_[index];
  const std::size_t label_at = align(extent.size + kFooter);
  if (scratch.size() < label_at + sizeof(std::int64_t)) scratch.resize(label_at + sizeof(std::int64_t));
  const std::size_t file = file_of(index);
  const auto fail = [&](ErrorCode code, const std::string& what, const std::string& hint) {
    throw DataError(code, fmt::format("{}: {}", describe(index), what),
                    {.source = info_.name, .record = index, .offset = extent.offset}, hint);
  };
  try {
    files_.read_exact(file, extent.offset,
                      std::span(scratch).first(static_cast<std::size_t>(extent.size + kFooter)));
  } catch (const DataError& error) {
    fail(error.code(), "cannot be read", error.message());
  }
  const std::span<const std::byte> payload = std::span(scratch).first(static_cast<std::size_t>(extent.size));
  if (number_at(scratch, static_cast<std::size_t>(extent.size), kFooter) != mask_crc32c(crc32c(payload))) {
    fail(ErrorCode::kDataCorrupt, "the checksum of its bytes does not hold", "copy the file anew");
  }
  try {
    const TfExample example = parse_tf_example(payload, options_);
    std::memcpy(scratch.data() + label_at, &example.label, sizeof example.label);
    return {
        .fields = {example.image, std::span<const std::byte>(scratch).subspan(label_at, sizeof example.label)}};
  } catch (const Error& error) {
    fail(error.code(), error.message(), error.hint());
  }
  return {};
}

std::string TfRecords::describe(std::uint64_t index) const {
  const std::size_t file = file_of(index);
  return fmt::format("{}[{}]", files_.path(file).filename().string(),
                     index - (file == 0 ? 0 : info_.file_ends[file - 1]));
}

SourcePtr tf_records(const std::filesystem::path& path, TfRecordOptions options) {
  if (path_kind(path) != PathKind::kDirectory) return tf_records(std::vector{path}, std::move(options));
  static const std::string kEndings[] = {".tfrecord", ".tfrecords"};
  std::vector<std::filesystem::path> files = find_shards(path, kEndings, options.split);
  if (files.empty()) {
    throw DataError(ErrorCode::kNotFound, "has no .tfrecord file", {.source = path.string()},
                    "name the files themselves where they are called otherwise");
  }
  return std::make_shared<TfRecords>(path.string(), std::move(files), std::move(options));
}

SourcePtr tf_records(std::vector<std::filesystem::path> files, TfRecordOptions options) {
  if (files.empty()) throw ConfigError("tf_records() was given no files");
  std::string name = files.front().string();
  if (files.size() > 1) name += fmt::format(" and {} more", files.size() - 1);
  return std::make_shared<TfRecords>(std::move(name), std::move(files), std::move(options));
}

}  // namespace headrace
