#include "headrace/cache/disk/segment_writer.h"

#include <random>

#include "headrace/cache/disk/segment_reader.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

std::filesystem::path new_path(const std::filesystem::path& folder) {
  make_folders(folder);
  std::random_device random;
  const std::uint64_t number = std::uint64_t{random()} << 32 | random();
  return folder / (to_hex(number) + ".segment");
}

}  // namespace

SegmentWriter::SegmentWriter(const std::filesystem::path& folder, const SegmentStream& stream)
    : stream_(stream), file_(new_path(folder), encode_segment_header(stream)) {}

SegmentEntry SegmentWriter::append(SegmentEntry entry, std::span<const std::byte> stored) {
  entry.offset = size() + kEntryHeaderBytes;
  entry.stored_bytes = static_cast<std::uint32_t>(stored.size());
  entry.checksum = checksum_of(entry, stored, stream_.fingerprint);
  append_entry_header(entry, buffer_);
  buffer_.insert(buffer_.end(), stored.begin(), stored.end());
  entries_.push_back(entry);
  return entry;
}

void SegmentWriter::flush() {
  file_.append(buffer_);
  buffer_.clear();
}

void SegmentWriter::seal() {
  flush();
  write_file_atomically(index_path(file_.path()), encode_index(stream_, file_.size(), entries_),
                        Durability::kLater);
}

}  // namespace headrace
