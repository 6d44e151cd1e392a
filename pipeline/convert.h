// Packs a data set into one record file, for fast reading by position. pipeline/FORMAT.md describes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/sources.h"

namespace HEADRACE_API headrace {

struct ConvertOptions {
  // Of encoded images: longer sides are reduced to this (antialiased, aspect kept), what fits already stays byte
  // for byte. 0: all stay as they are.
  std::int64_t max_side = 0;
  // 1 to 100: every encoded image becomes a JPEG of this quality. 0: only those that max_side reduces do, at 90.
  int quality = 0;
  int threads = 0;  // that decode and encode; 0: one a processor. The file is the same with any number
  // Images that say in their EXIF data that they are stored another way up are turned, and encoded again for it.
  bool apply_orientation = false;
  // Only this split; without it both, or the only one of a format that has no other.
  std::optional<Split> split = {};
  SourceOptions source = {};  // of the data
  // Of records that cannot be read, decoded or encoded, or whose label is none of the classes. kSkip leaves them
  // out of the file; it reads and decodes everything once before, to find them. kSubstitute is a ConfigError: a
  // record file has each record once. max_bad_share is of the records of a split.
  ErrorPolicy errors = {};
  // Told after each record, from the calling thread: how many are done, of how many. Where bad records are to be
  // skipped they are counted to the end twice: first they are found.
  std::function<void(std::uint64_t done, std::uint64_t records)> progress = {};
};

struct ConvertResult {
  std::uint64_t records = 0;               // of all splits
  std::uint64_t bytes = 0;                 // of the file
  std::uint64_t bad_records = 0;           // of all splits, left out
  std::optional<Split> absent = {};        // a split that the origin does not have
  std::vector<LeftOut> left_out = {};      // what lies there beside the records
  std::vector<SourceColumn> columns = {};  // as in SourceInfo
};

// Writes whatever open_source() knows at `data` to the file `to`, which appears whole or not at all and replaces
// what was there. Every image is decoded, those too that stay as they are: the file has no bad record. DataError
// naming the record that is bad; ConfigError where options and data do not go together.
ConvertResult convert_dataset(const std::filesystem::path& data, const std::filesystem::path& to,
                              const ConvertOptions& options = {});

}  // namespace headrace
