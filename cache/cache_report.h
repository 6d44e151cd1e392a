// What is in the folder of a disk cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace headrace {

// One stream's.
struct CacheReport {
  std::string fingerprint;  // the folder's name
  std::uint64_t source_records = 0;
  std::uint64_t records = 0;  // stored, each once
  std::uint64_t bytes = 0;    // of all files
  std::uint64_t segments = 0;
  std::uint64_t bad = 0;              // damaged entries, indexes and segments
  std::vector<std::string> findings;  // what is bad, one sentence each; 20 at the maximum
};

enum class Thoroughness {
  kIndexes,    // what the indexes say
  kEveryByte,  // each entry is read and checked
};

// One report per stream, ordered by fingerprint. Changes nothing. DataError if the folder cannot be read.
std::vector<CacheReport> inspect_cache(const std::filesystem::path& folder, Thoroughness thoroughness);

}  // namespace headrace
