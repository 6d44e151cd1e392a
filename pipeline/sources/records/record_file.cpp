#include "headrace/pipeline/sources/records/record_file.h"

#include <algorithm>
#include <memory>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/records/record_file_format.h"

namespace headrace {
namespace {

const char* split_word(Split split) { return split == Split::kTrain ? "train" : "test"; }

}  // namespace

RecordFile::RecordFile(const std::filesystem::path& path, Split split) : file_(File::open(path)) {
  std::uint64_t header_bytes = 0;
  RecordFileHeader header = RecordFileHeader::read(file_, header_bytes);
  index_ = RecordFileIndex::read(file_, header, header_bytes);
  const auto found = std::ranges::find(header.splits, split, &RecordFileHeader::SplitEntry::split);
  if (found == header.splits.end()) {
    throw ConfigError(path.string() + ": holds no " + split_word(split) + " split, only " +
                          split_word(header.splits.front().split),
                      "convert a data set that has both");
  }
  for (auto entry = header.splits.begin(); entry != found; ++entry) first_ += entry->records;

  Fingerprint fingerprint("record file 1");
  for (const Field& field : header.fields) fingerprint.add(field);
  for (const std::string& name : header.classes) fingerprint.add(name);
  fingerprint.add(found->records);
  for (std::uint64_t i = 0; i < found->records; ++i) {
    fingerprint.add(index_[first_ + i].checksum).add(index_.bytes(first_ + i));
  }
  info_ = {.name = path.string(),
           .records = found->records,
           .fields = std::move(header.fields),
           .classes = std::move(header.classes),
           .fingerprint = fingerprint.value(),
           .images_checked = true};
}

RecordView RecordFile::read(std::uint64_t index, std::vector<std::byte>& scratch) const {
  if (index >= info_.records) throw no_such_record(info_, index);
  const RecordFileIndex::Entry& entry = index_[first_ + index];
  const auto size = static_cast<std::size_t>(index_.bytes(first_ + index));
  if (scratch.size() < size) scratch.resize(size);
  const std::span<std::byte> bytes = std::span(scratch).first(size);
  const DataLocation place{.source = info_.name, .record = index, .offset = entry.offset};
  try {
    file_.read_exact(entry.offset, bytes);
  } catch (const DataError& error) {
    throw DataError(error.code(), "cannot read " + describe(index), place, error.message());
  }
  if (xxh3(std::span<const std::byte>(bytes)) != entry.checksum) {
    throw DataError(ErrorCode::kDataCorrupt, describe(index) + " does not agree with its checksum", place,
                    "the file was changed or damaged: convert the data again");
  }
  RecordView view;
  std::size_t at = 0;
  for (const std::uint64_t length : index_.field_bytes(first_ + index)) {
    view.fields[view.fields.size()] = bytes.subspan(at, static_cast<std::size_t>(length));
    at += static_cast<std::size_t>(length);
  }
  return view;
}

void RecordFile::will_read(std::span<const std::uint64_t> records) const {
  if (!file_.is_remote()) return;
  std::vector<ByteExtent> extents;
  for (const std::uint64_t record : records) {
    extents.push_back({.offset = index_[first_ + record].offset, .size = index_.bytes(first_ + record)});
  }
  file_.will_read(extents);
}

std::string RecordFile::describe(std::uint64_t index) const {
  const std::string_view name = index < info_.records ? index_.name(first_ + index) : std::string_view();
  return name.empty() ? info_.name + "[" + std::to_string(index) + "]" : std::string(name);
}

bool is_record_file(const std::filesystem::path& path) {
  const File file = File::open(path);
  std::array<std::byte, RecordFileHeader::kMagic.size()> start{};
  return file.read_some(0, start) == start.size() && start == RecordFileHeader::kMagic;
}

SourcePtr record_file(const std::filesystem::path& path, Split split) {
  return opened_by(RecordFileCall{{path, {split}}}, std::make_shared<RecordFile>(path, split));
}

}  // namespace headrace
