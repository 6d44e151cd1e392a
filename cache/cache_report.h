// Inspection of a disk cache's folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// The report on one stream.
struct CacheReport {
  std::string fingerprint;  // the folder's name
  std::uint64_t source_records = 0;
  std::uint64_t records = 0;  // stored, each once
  std::uint64_t bytes = 0;    // of all files
  std::uint64_t segments = 0;
  std::uint64_t bad = 0;              // damaged entries, indexes and segments
  std::vector<std::string> findings;  // one sentence per defect, in file order; at most 20

  friend bool operator==(const CacheReport&, const CacheReport&) = default;
};

enum class Thoroughness {
  kIndexes,    // what the indexes say
  kEveryByte,  // each entry is read and checked
};

// Calls task(0) ... task(count - 1), each once, in any order and possibly concurrently; returns when all have
// ended.
using TaskRunner = std::function<void(std::size_t count, const std::function<void(std::size_t)>& task)>;

// Returns one report per stream, ordered by fingerprint, the same whichever thread runs the tasks; without `run`
// the calling thread does. Changes nothing. Throws DataError if the folder cannot be read.
std::vector<CacheReport> inspect_cache(const std::filesystem::path& folder, Thoroughness thoroughness,
                                       const TaskRunner& run = {});

}  // namespace headrace
