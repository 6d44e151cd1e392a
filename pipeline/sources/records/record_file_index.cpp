#include "headrace/pipeline/sources/records/record_file_index.h"

#include <algorithm>

#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/pipeline/sources/records/record_file_header.h"

namespace headrace {
namespace {

constexpr std::size_t kFooterBytes = 48;
constexpr std::size_t kCheckedFooterBytes = 32;

struct Footer {
  std::uint64_t index_offset = 0, index_bytes = 0, index_checksum = 0, records = 0;
};

constexpr std::size_t entry_bytes(std::size_t fields) { return (3 + fields) * sizeof(std::uint64_t); }

[[noreturn]] void fail_index(const File& file, const std::string& what, std::uint64_t offset) {
  throw DataError(ErrorCode::kDataCorrupt, what, {.source = file.path().string(), .offset = offset},
                  "the file was cut short, changed or damaged: convert the data again");
}

Footer read_footer(const File& file, std::uint64_t first) {
  if (file.size() < first || file.size() - first < kFooterBytes)
    fail_index(file, "ends before its footer", file.size());
  const std::uint64_t at = file.size() - kFooterBytes;
  std::array<std::byte, kFooterBytes> bytes{};
  file.read_exact(at, bytes);
  ByteReader in(bytes, file.path().string(), at);
  const Footer footer{
      .index_offset = in.u64(), .index_bytes = in.u64(), .index_checksum = in.u64(), .records = in.u64()};
  const std::uint64_t checksum = in.u64();
  const std::span<const std::byte> magic = in.raw(RecordFileHeader::kMagic.size());
  if (!std::equal(magic.rbegin(), magic.rend(), RecordFileHeader::kMagic.begin())) {
    fail_index(file, "has no footer where it ends", at);
  }
  if (checksum != xxh3(std::span(bytes).first(kCheckedFooterBytes))) {
    fail_index(file, "the footer does not agree with its checksum", at);
  }
  if (footer.index_offset < first || footer.index_offset > at || footer.index_bytes != at - footer.index_offset) {
    fail_index(file, "the index does not lie between records and footer", at);
  }
  return footer;
}

}  // namespace

std::uint64_t RecordFileIndex::bytes(std::uint64_t record) const noexcept {
  std::uint64_t sum = 0;
  for (const std::uint64_t field : field_bytes(record)) sum += field;
  return sum;
}

void RecordFileIndex::add(std::uint64_t offset, std::uint64_t checksum, std::span<const std::uint64_t> field_bytes,
                          std::string_view name) {
  names_ += name;
  field_bytes_.insert(field_bytes_.end(), field_bytes.begin(), field_bytes.end());
  entries_.push_back({.offset = offset, .checksum = checksum, .name_end = names_.size()});
}

std::string_view RecordFileIndex::name(std::uint64_t record) const noexcept {
  const std::uint64_t begin = record == 0 ? 0 : entries_[record - 1].name_end;
  return std::string_view(names_).substr(begin, entries_[record].name_end - begin);
}

std::vector<std::byte> RecordFileIndex::encode(std::uint64_t offset) const {
  ByteWriter index;
  for (std::uint64_t i = 0; i < size(); ++i) {
    const Entry& entry = entries_[i];
    index.u64(entry.offset).u64(entry.checksum).u64(name(i).size());
    for (const std::uint64_t bytes : field_bytes(i)) index.u64(bytes);
  }
  index.raw(std::as_bytes(std::span(names_)));
  ByteWriter footer;
  footer.u64(offset).u64(index.bytes().size()).u64(xxh3(index.bytes())).u64(size());
  footer.u64(xxh3(footer.bytes()));
  std::array<std::byte, RecordFileHeader::kMagic.size()> end = RecordFileHeader::kMagic;
  std::ranges::reverse(end);
  index.raw(footer.bytes()).raw(end);
  return {index.bytes().begin(), index.bytes().end()};
}

RecordFileIndex RecordFileIndex::read(const File& file, const RecordFileHeader& header, std::uint64_t first) {
  const Footer footer = read_footer(file, first);
  const std::size_t fields = header.fields.size();
  std::uint64_t promised = 0;
  for (const RecordFileHeader::SplitEntry& split : header.splits) {
    if (split.records > footer.records - promised)
      fail_index(file, "header and footer disagree on the number of records", 0);
    promised += split.records;
  }
  if (promised != footer.records || footer.records > footer.index_bytes / entry_bytes(fields)) {
    fail_index(file, "header, footer and index disagree on the number of records", footer.index_offset);
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(footer.index_bytes));
  file.read_exact(footer.index_offset, bytes);
  if (xxh3(std::span<const std::byte>(bytes)) != footer.index_checksum) {
    fail_index(file, "the index does not agree with its checksum", footer.index_offset);
  }

  RecordFileIndex index(fields);
  index.entries_.reserve(static_cast<std::size_t>(footer.records));
  index.field_bytes_.reserve(static_cast<std::size_t>(footer.records) * fields);
  ByteReader in(bytes, file.path().string(), footer.index_offset);
  std::uint64_t at = first, names = 0;
  const std::uint64_t max_names = footer.index_bytes - footer.records * entry_bytes(fields);
  for (std::uint64_t record = 0; record < footer.records; ++record) {
    Entry entry{.offset = in.u64(), .checksum = in.u64()};
    const std::uint64_t name = in.u64();
    if (entry.offset != at)
      in.fail("record " + std::to_string(record) + " does not begin where the one before ends");
    if (name > max_names - names) in.fail("the name of record " + std::to_string(record) + " is too long");
    names += name;
    entry.name_end = names;
    for (std::size_t field = 0; field < fields; ++field) {
      const std::uint64_t length = in.u64();
      if (length > footer.index_offset - at)
        in.fail("record " + std::to_string(record) + " reaches into the index");
      if (!can_have(header.fields[field], length)) {
        in.fail("field '" + header.fields[field].name + "' of record " + std::to_string(record) + " has " +
                std::to_string(length) + " bytes, not those of " + header.fields[field].shape.to_string());
      }
      index.field_bytes_.push_back(length);
      at += length;
    }
    index.entries_.push_back(entry);
  }
  if (at != footer.index_offset) in.fail("there are bytes between the last record and the index");
  if (names != in.left()) in.fail("there are bytes left over after the names");
  const std::span<const std::byte> text = in.raw(names);
  index.names_.assign(reinterpret_cast<const char*>(text.data()), text.size());
  return index;
}

}  // namespace headrace
