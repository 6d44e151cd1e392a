// Packs a data set into record files, for fast reading by position, or writes its index. pipeline/FORMAT.md
// describes the files.
#pragma once

#include <array>
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

class Dataset;

// What is written: record files (pipeline/FORMAT.md), or tars in WebDataset's naming, whose records have an
// encoded image: 000000012.jpg, 000000012.cls, and for each other field 000000012.NAME.txt, .npy or, of a mask,
// .png.
enum class ConvertFormat { kRecords, kWebDataset };
constexpr std::array<const char*, 2> choice_names(ConvertFormat /*of*/) { return {"records", "webdataset"}; }

struct ConvertOptions {
  ConvertFormat format = ConvertFormat::kRecords;
  // Maximum side of encoded images: larger ones are reduced to it (antialiased, aspect kept), smaller ones stay
  // byte for byte. 0: all stay as they are.
  std::int64_t max_side = 0;
  // 1 to 100: every encoded image becomes a JPEG of this quality. 0: only those that max_side reduces, at 90.
  int quality = 0;
  // Writes several files of about so many bytes into a folder; 0: all into one file. The records of a split are
  // divided evenly, by the bytes of 64 of them.
  std::uint64_t shard_bytes = 0;
  int threads = 0;  // decode and encode; 0: one per processor. The files are the same with any number
  // Turns, and encodes again, images whose EXIF data say that they are stored another way up.
  bool apply_orientation = false;
  // Only this split; std::nullopt: both, or the only one of a format without others.
  std::optional<Split> split = {};
  SourceOptions source = {};  // options of the data's source
  // For records that cannot be read, decoded or encoded, or whose label is no class. kSkip leaves them out of the
  // file; an additional pass reads and decodes everything first to find them. kSubstitute is a ConfigError: a
  // record file has each record once. max_bad_share applies to the records of a split.
  ErrorPolicy errors = {};
  // Called after each record, by the calling thread, with the records done and their total; that of a stream is
  // kUnknownRecords. If bad records are skipped, they are counted to the end twice: once to find them.
  std::function<void(std::uint64_t done, std::uint64_t records)> progress = {};
};

// Shows the options that are data; a `split` of "all" is none in C++.
void show(ConvertOptions& options, OptionVisitor& visit);

struct ConvertResult {
  std::uint64_t records = 0;         // of all splits
  std::uint64_t bytes = 0;           // of the files
  std::uint64_t shards = 0;          // files that were written into a folder
  std::uint64_t kept_shards = 0;     // of them those that were there, from a conversion that did not end
  std::uint64_t bad_records = 0;     // of all splits, left out
  std::optional<Split> absent = {};  // a split that the origin lacks
  std::string reading = {};          // how the origin was read: describe_reading()
};

// Writes any data set that open_source() recognises at `data` to the file `to`, which appears whole or not at all
// and replaces an existing one; also in a store (s3://, gs://, az://). Every image is decoded, even if it stays as
// it is: the file has no bad record. Throws DataError naming the bad record; ConfigError if options and data do
// not fit together.
//
// With shard_bytes `to` is a folder, made if missing, that gets train-00000-of-00012.records (or .tar) and so on,
// which open_source() reads as one data set: records, their numbers and the fingerprint are those of the one file.
// Each appears whole. Until the last one is written, a marker file, .headrace-convert, records the inputs and
// options: repeating the call resumes a conversion that failed or was killed. Throws ConfigError for a folder that
// has record files without a marker, or the marker of another conversion.
//
// Shards that are not indexed (SourceOptions::indexed) and other streams are read once, from front to back, and
// written as ShardWriter (shard_writer.h) does: one split, with shard_bytes.
ConvertResult convert_dataset(const std::filesystem::path& data, const std::filesystem::path& to,
                              const ConvertOptions& options = {});

// Writes the records of a dataset that has no stages, such as those of functions, arrays and tables, in the same
// way: as the split of the options, or train; options.source is not used. Throws ConfigError for stages.
ConvertResult convert_dataset(const Dataset& data, const std::filesystem::path& to,
                              const ConvertOptions& options = {});

struct IndexOptions {
  std::optional<Split> split = {};  // only this one
  SourceOptions source = {};
  // The file for all indexes in one set: ".headrace-index" beside the data is found by every later opening, on any
  // machine. Empty: they are only kept in the user's cache folder.
  std::filesystem::path to = {};
};

struct IndexResult {
  std::uint64_t records = 0;  // of all splits
  std::uint64_t shards = 0;   // files that have an index
  std::uint64_t bytes = 0;    // of the indexes
  std::string reading = {};
};

// Opens the data, which reads tars and TFRecord files that have no index yet, or have changed. Throws as
// open_source() does, and ConfigError if nothing there has an index.
IndexResult index_dataset(const std::filesystem::path& data, const IndexOptions& options = {});

}  // namespace headrace
