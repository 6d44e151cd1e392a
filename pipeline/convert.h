// Packs a data set into one record file, for fast reading by position. pipeline/FORMAT.md describes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/option_visitor.h"
#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/sources.h"

namespace HEADRACE_API headrace {

struct ConvertOptions {
  // Maximum side of encoded images: larger ones are reduced to it (antialiased, aspect kept), smaller ones stay
  // byte for byte. 0: all stay as they are.
  std::int64_t max_side = 0;
  // 1 to 100: every encoded image becomes a JPEG of this quality. 0: only those that max_side reduces, at 90.
  int quality = 0;
  int threads = 0;  // decode and encode; 0: one per processor. The file is the same with any number
  // Turns, and encodes again, images whose EXIF data say that they are stored another way up.
  bool apply_orientation = false;
  // Only this split; std::nullopt: both, or the only one of a format without others.
  std::optional<Split> split = {};
  SourceOptions source = {};  // options of the data's source
  // For records that cannot be read, decoded or encoded, or whose label is no class. kSkip leaves them out of the
  // file; an additional pass reads and decodes everything first to find them. kSubstitute is a ConfigError: a
  // record file has each record once. max_bad_share applies to the records of a split.
  ErrorPolicy errors = {};
  // Called after each record, by the calling thread, with the records done and their total. If bad records are
  // skipped, they are counted to the end twice: once to find them.
  std::function<void(std::uint64_t done, std::uint64_t records)> progress = {};
};

// Shows the options that are data; a `split` of "all" is none in C++.
void show(ConvertOptions& options, OptionVisitor& visit);

struct ConvertResult {
  std::uint64_t records = 0;         // of all splits
  std::uint64_t bytes = 0;           // of the file
  std::uint64_t bad_records = 0;     // of all splits, left out
  std::optional<Split> absent = {};  // a split that the origin lacks
  std::string reading = {};          // how the origin was read: describe_reading()
};

// Writes any data set that open_source() recognises at `data` to the file `to`, which appears whole or not at all
// and replaces an existing one. Every image is decoded, even if it stays as it is: the file has no bad record.
// Throws DataError naming the bad record; ConfigError if options and data do not fit together.
ConvertResult convert_dataset(const std::filesystem::path& data, const std::filesystem::path& to,
                              const ConvertOptions& options = {});

}  // namespace headrace
