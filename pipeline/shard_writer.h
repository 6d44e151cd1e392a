// Writes records one at a time, without knowing how many there will be, as files that are read as one data set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/record.h"
#include "headrace/pipeline/sources.h"

namespace HEADRACE_API headrace {

// Fills a folder, also in a store (s3://, gs://, az://), with train-00000.records (or .tar), train-00001.records
// and so on. The records of one shard are kept in memory until they have ConvertOptions::shard_bytes; then they
// are checked and written by the options' threads, as convert_dataset() does it. Each file appears whole. Not
// thread-safe.
//
// Until finish() the folder holds a marker file, and open_source() refuses it. Writing the same records again
// resumes an interrupted run: record files that already hold them are kept, tars are written again.
class ShardWriter {
 public:
  static constexpr std::uint64_t kShardBytes = std::uint64_t{64} << 20;

  // options.shard_bytes of 0 stands for kShardBytes; the split is train if none is given; the options' source and
  // progress are not used. ErrorPolicy::max_bad_share applies to each shard. Throws ConfigError for a folder that
  // has shards of the split, or the marker of other options, and for options that do not fit the fields.
  ShardWriter(std::filesystem::path folder, Fields fields, std::vector<std::string> classes,
              const ConvertOptions& options);

  // Adds the record that `fill` writes; none if it throws. Throws ConfigError for a missing field, and any failure
  // to write the shard that was full before it.
  void append(const std::function<void(RecordWriter& record)>& fill);
  // Writes the last shard. REQUIRES: called once, last. Throws ConfigError if there were no records.
  ConvertResult finish();

 private:
  std::filesystem::path path_of(std::uint64_t shard) const;
  std::span<const std::byte> field_of(std::uint64_t record, std::size_t field) const noexcept;
  std::uint64_t content() const noexcept;
  SourcePtr shard() const;
  void write_shard();

  const std::filesystem::path folder_;
  const Fields fields_;
  const std::vector<std::string> classes_;
  ConvertOptions options_;
  std::vector<std::byte> record_;    // the one that is added
  std::vector<std::byte> bytes_;     // of the shard's records, field after field
  std::vector<std::uint64_t> ends_;  // of each record's fields there
  std::uint64_t given_ = 0;          // records, of the shards before
  ConvertResult result_;
};

}  // namespace headrace
