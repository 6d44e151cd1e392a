// What other processes append to a stream's folder while this one is at work.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "headrace/cache/segment_folder.h"
#include "headrace/cache/segment_reader.h"

namespace headrace {

// Not thread-safe. Keeps the readers of all segments that are not its process's own.
class SegmentFollowers {
 public:
  // A sample that is new here. The reader lives as long as this object.
  using Take = std::function<void(const SegmentReader& reader, const SegmentEntry& entry)>;

  SegmentFollowers(std::filesystem::path folder, const SegmentStream& stream)
      : folder_(std::move(folder)), stream_(stream) {}

  // All there is, with what dead processes left tidied up.
  void open(const Take& take);
  // What has come since. What cannot be read is passed over.
  void catch_up(const Take& take);
  // A segment of this process: not followed.
  void leave_out(const std::filesystem::path& segment) { segments_[segment] = {}; }

 private:
  struct Followed {
    std::unique_ptr<SegmentReader> reader;  // null: not followed
    std::uint64_t at = 0;                   // what lies before is known
  };

  void follow(const DirectoryEntry& file, const Take& take);

  std::filesystem::path folder_;
  SegmentStream stream_;
  std::map<std::filesystem::path, Followed> segments_;
};

}  // namespace headrace
