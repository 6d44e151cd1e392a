#include "headrace/pipeline/sources/records/record_file.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/records/record_file_format.h"
#include "headrace/pipeline/sources/side_by_side.h"
#include "headrace/pipeline/sources/split_names.h"

namespace headrace {
namespace {

const char* split_word(Split split) { return split == Split::kTrain ? "train" : "test"; }

// What a file says of itself.
struct Contents {
  RecordFileHeader header;
  RecordFileIndex index;

  explicit Contents(const std::filesystem::path& path) : Contents(File::open(path)) {}

 private:
  explicit Contents(const File& file, std::uint64_t header_bytes = 0)
      : header(RecordFileHeader::read(file, header_bytes)), index(file, header, header_bytes) {}
};

[[noreturn]] void refuse_split(const std::filesystem::path& name, Split split) {
  throw ConfigError(name.string() + ": holds no " + split_word(split) + " split, only " +
                        split_word(split == Split::kTrain ? Split::kTest : Split::kTrain),
                    "convert a data set that has both");
}

void require_same(const SourceInfo& info, const RecordFileHeader& header, const std::filesystem::path& path) {
  if (info.fields == header.fields && info.classes == header.classes) return;
  throw ConfigError(path.string() + ": its fields or classes are not those of the files before it",
                    "keep the files of one conversion in a folder of their own");
}

}  // namespace

RecordFiles::RecordFiles(const std::filesystem::path& name, std::vector<std::filesystem::path> files, Split split)
    : files_(std::move(files)) {
  info_.name = name.string();
  info_.images_checked = true;
  std::vector<std::optional<Contents>> contents(files_.size());
  read_side_by_side(
      files_.size(), files_.is_remote(), [&](std::size_t file) { contents[file].emplace(files_.path(file)); },
      [](std::size_t) {});
  info_.fields = contents.front()->header.fields;
  info_.classes = contents.front()->header.classes;
  for (std::size_t file = 0; file < files_.size(); ++file) {
    Part part{.file = file, .index = std::move(contents[file]->index), .begin = info_.records};
    require_same(info_, contents[file]->header, files_.path(file));
    for (const RecordFileHeader::SplitEntry& entry : contents[file]->header.splits) {
      if (entry.split == split) {
        part.records = entry.records;
        part.has_split = true;
      } else if (!part.has_split) {
        part.first += entry.records;
      }
    }
    info_.records += part.records;
    parts_.push_back(std::move(part));
  }
  // The fingerprint is computed while the indexes are checked, and discarded if a check fails.
  read_side_by_side(
      files_.size() + 1, /*remote=*/false,
      [&](std::size_t file) {
        if (file == files_.size()) {
          info_.fingerprint = fingerprint();
        } else {
          parts_[file].index.check(files_.path(file), contents[file]->header);
        }
      },
      [](std::size_t) {});
  std::erase_if(parts_, [](const Part& part) { return !part.has_split; });
  if (parts_.empty()) refuse_split(name, split);
}

std::uint64_t RecordFiles::fingerprint() const {
  Fingerprint fingerprint("record file 1");
  for (const Field& field : info_.fields) fingerprint.add(field);
  for (const std::string& one : info_.classes) fingerprint.add(one);
  fingerprint.add(info_.records);
  for (const Part& part : parts_) {
    for (std::uint64_t entry = part.first; entry < part.first + part.records; ++entry)
      fingerprint.add(part.index.checksum(entry)).add(part.index.bytes(entry));
  }
  return fingerprint.value();
}

RecordFiles::At RecordFiles::find(std::uint64_t index) const noexcept {
  const auto after = std::ranges::upper_bound(parts_, index, {}, &Part::begin);
  const Part& part = *std::prev(after);
  return {.part = part, .entry = part.first + index - part.begin};
}

std::uint64_t RecordFiles::offset(std::uint64_t index) const noexcept {
  const At at = find(index);
  return at.part.index.offset(at.entry);
}

RecordView RecordFiles::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  const At at = find(index);
  const RecordFileIndex& entries = at.part.index;
  const std::uint64_t offset = entries.offset(at.entry);
  const auto size = static_cast<std::size_t>(entries.bytes(at.entry));
  if (scratch.size() < size) scratch.resize(size);
  const std::span<std::byte> bytes = std::span(scratch).first(size);
  const auto place = [&] {
    return DataLocation{
        .source = files_.path(at.part.file).string(), .record = index - at.part.begin, .offset = offset};
  };
  try {
    files_.read_exact(at.part.file, offset, bytes);
  } catch (const DataError& error) {
    throw DataError(error.code(), "cannot read " + name_of(at), place(), error.message());
  }
  if (xxh3(std::span<const std::byte>(bytes)) != entries.checksum(at.entry)) {
    throw DataError(ErrorCode::kDataCorrupt, name_of(at) + " does not agree with its checksum", place(),
                    "the file was changed or damaged: convert the data again");
  }
  RecordView view;
  std::size_t begin = 0;
  for (std::size_t field = 0; field < info_.fields.size(); ++field) {
    const auto length = static_cast<std::size_t>(entries.field_bytes(at.entry, field));
    view.fields[field] = bytes.subspan(begin, length);
    begin += length;
  }
  return view;
}

std::span<const std::byte> RecordFiles::jpeg_index(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (files_.is_remote() || index >= info_.records) return {};
  const At at = find(index);
  const RecordFileIndex& entries = at.part.index;
  const auto size = static_cast<std::size_t>(entries.jpeg_bytes(at.entry));
  if (size <= kJpegChecksum) return {};
  if (scratch.size() < size) scratch.resize(size);
  const std::span<std::byte> bytes = std::span(scratch).first(size);
  try {
    files_.read_exact(at.part.file, entries.offset(at.entry) + entries.bytes(at.entry), bytes);
  } catch (const DataError&) {
    return {};
  }
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, bytes.data(), sizeof checksum);
  const std::span<const std::byte> stored = bytes.subspan(kJpegChecksum);
  return checksum == xxh3(stored, entries.checksum(at.entry)) ? stored : std::span<const std::byte>();
}

void RecordFiles::will_read(std::span<const std::uint64_t> records) const {
  if (!files_.is_remote()) return;
  if (records.empty()) return files_.forget();
  std::vector<std::vector<ByteExtent>> extents(files_.size());
  for (const std::uint64_t record : records) {
    const At at = find(record);
    extents[at.part.file].push_back(
        {.offset = at.part.index.offset(at.entry), .size = at.part.index.bytes(at.entry)});
  }
  for (std::size_t file = 0; file < extents.size(); ++file) {
    if (!extents[file].empty()) files_.will_read(file, extents[file]);
  }
}

std::string RecordFiles::name_of(const At& at) const {
  const std::string_view name = at.part.index.name(at.entry);
  if (!name.empty()) return std::string(name);
  return files_.path(at.part.file).string() + "[" + std::to_string(at.entry - at.part.first) + "]";
}

std::string RecordFiles::describe(std::uint64_t index) const {
  return index < info_.records ? name_of(find(index)) : info_.name + "[" + std::to_string(index) + "]";
}

bool is_record_file(const std::filesystem::path& path) {
  const File file = File::open(path);
  std::array<std::byte, RecordFileHeader::kMagic.size()> start{};
  return file.read_some(0, start) == start.size() && start == RecordFileHeader::kMagic;
}

bool is_record_shard(const std::filesystem::path& path) { return path.extension() == ".records"; }

namespace {

SourcePtr open_record_files(const std::filesystem::path& path, Split split) {
  if (path_kind(path) != PathKind::kDirectory)
    return std::make_shared<RecordFiles>(path, std::vector{path}, split);
  std::vector<std::filesystem::path> files;
  std::uint64_t others = 0;
  for (const DirectoryEntry& entry : list_directory(path)) {
    refuse_unfinished(entry);
    const bool counts = !entry.is_directory && !is_hidden_name(entry.path.filename().native());
    if (counts && is_record_shard(entry.path)) {
      files.push_back(entry.path);
    } else if (counts) {
      ++others;
    }
  }
  if (files.empty()) {
    throw DataError(ErrorCode::kNotFound, "holds no record files, NAME.records", {.source = path.string()});
  }
  check_complete(path, files);
  std::string reading = count_of(files.size(), "record file") + ", in the order of their names";
  auto source = std::make_shared<RecordFiles>(path, std::move(files), split);
  source->note_reading(std::move(reading));
  if (others > 0) source->leave_out({.what = "files that are no .records", .files = others});
  return source;
}

}  // namespace

SourcePtr record_file(const std::filesystem::path& path, Split split) {
  return opened_by(RecordFileCall{{path, {split}}}, open_record_files(path, split));
}

}  // namespace headrace
