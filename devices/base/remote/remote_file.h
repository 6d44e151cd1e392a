// A remote file read by position: ranges fetched ahead as announced, or as a reader goes through it in order.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/remote/fetched_range.h"

namespace headrace::remote {

// Thread-safe; shared by all who have the file open.
class RemoteFile {
 public:
  // `head`: the file's first bytes, as far as they are known.
  RemoteFile(FileVersion version, std::vector<std::byte> head)
      : version_(std::make_shared<const FileVersion>(std::move(version))), head_(std::move(head)) {}
  ~RemoteFile() { drop_all(); }

  const FileVersion& version() const noexcept { return *version_; }
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> into);
  void will_read(std::span<const ByteExtent> extents);
  // Forgets what was fetched ahead, of all who have it open.
  void drop_all() noexcept;

 private:
  struct Entry {
    std::shared_ptr<FetchedRange> range;
    std::uint64_t needed = 0, used = 0;  // bytes; dropped once used
    bool streamed = false;
  };
  using Entries = std::map<std::uint64_t, Entry>;  // by their first byte

  Entries::iterator covering(std::uint64_t offset);
  std::shared_ptr<FetchedRange> range_for(std::uint64_t offset, std::uint64_t size);
  void add(std::uint64_t begin, std::uint64_t end, std::uint64_t needed);
  bool goes_on(std::uint64_t offset) const noexcept;
  void stream_from(std::uint64_t offset, bool waits);
  static void drop(const Entry& entry) noexcept;
  void drop_behind(std::uint64_t offset);
  void note_used(const std::shared_ptr<FetchedRange>& range, std::uint64_t bytes);

  const std::shared_ptr<const FileVersion> version_;
  const std::vector<std::byte> head_;
  std::mutex mutex_;
  // By mutex_.
  Entries entries_;
  std::uint64_t last_end_ = 0;    // of the latest read
  std::uint64_t stream_end_ = 0;  // of what was asked for ahead of reads in order
  std::uint64_t window_ = 0;      // bytes to have ahead of them
};

}  // namespace headrace::remote
