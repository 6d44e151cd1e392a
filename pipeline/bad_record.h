// A record that could not be used, and why; and all of a run's, counted.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {

struct SourceInfo;

struct BadRecord {
  ErrorCode code = ErrorCode::kInternal;
  std::string source = {};  // a path, or a name for data in memory
  std::uint64_t record = DataLocation::kUnknown;
  std::string name = {};                          // "train/cat/0007.jpg"
  std::uint64_t offset = DataLocation::kUnknown;  // of the byte at fault within the source, where it is known
  std::string operation = {};                     // "source read", "decode", "map user_map 'blur'"
  std::string cause = {};
  std::optional<std::uint64_t> substitute = {};  // the record that stands in its place
  std::int64_t row = 0;                          // where it stands, or would, in the global batch
};

// "name: operation: cause"
std::string describe(const BadRecord& bad);

// Counts the records that were skipped or replaced, each once, over several loaders, splits and epochs.
// Thread-safe.
class BadRecordTally {
 public:
  struct Count {
    std::uint64_t bad = 0;
    std::uint64_t records = 0;            // of all sources that were read
    std::optional<BadRecord> first = {};  // that was met
  };

  // Records of this source are going to be read. One that was named before is the same source.
  void begin(const SourceInfo& source);
  void add(const SourceInfo& source, const BadRecord& bad);

  Count count() const;

 private:
  mutable std::mutex mutex_;
  std::set<std::uint64_t> sources_;                            // by fingerprint
  std::set<std::pair<std::uint64_t, std::uint64_t>> counted_;  // by fingerprint of the source and record
  Count count_;
};

}  // namespace headrace
