// One split of a data set that is converted: what is written of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "headrace/devices/base/file_writer.h"
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/engine/bad_records.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/records/record_file_format.h"
#include "headrace/pipeline/sources/records/record_output.h"
#include "headrace/pipeline/utilities/record_packing.h"

namespace headrace {

struct ConvertedPart {
  Split split = Split::kTrain;
  SourcePtr source = {};
  std::set<std::uint64_t> bad = {};  // records that are left out
};

// "train" or "test".
const char* name_of(Split split) noexcept;

// Throws ConfigError for options that are out of range, or do not fit what lies at `to`.
void check_conversion(const ConvertOptions& options, const std::filesystem::path& to);
// Throws ConfigError for options that would change images where there are none to change.
void check_recoding(const SourceInfo& info, const ConvertOptions& options);

// Returns the header of a file of these parts. The counts are without the bad records. Throws ConfigError if their
// fields or classes differ.
RecordFileHeader header_of(const std::vector<ConvertedPart>& parts);

// Decodes all records, and fills part.bad with those that cannot be written: a file's header says how many follow,
// and a file may be a pipe. Throws DataError if there are too many. `done` is called after each record.
void find_bad(ConvertedPart& part, const ConvertOptions& options, const std::function<void()>& done);

// Begins a file of the options' format. `first`: the number of its first record.
std::unique_ptr<RecordOutput> output_to(std::unique_ptr<FileWriter> file, RecordFileHeader header,
                                        const ConvertOptions& options, std::uint64_t first);

// Reports the bad records of one source.
class BadRecordList {
 public:
  // `source` outlives it.
  BadRecordList(const ErrorPolicy& policy, const Source& source);

  void add(const BadRecord& bad, OnError action);

 private:
  std::shared_ptr<BadRecordTally> tally_;
  const Source& source_;
  std::optional<Quarantine> quarantine_;
};

// Writes some of a part's records. What it is made of outlives it.
class PartWriter {
 public:
  // `done` is called after each record.
  PartWriter(const ConvertedPart& part, const ConvertOptions& options, const std::function<void()>& done);

  // Throws the failure of a record that is bad and not left out.
  void write(std::uint64_t first, std::uint64_t count, RecordOutput& writer);
  // Returns the bytes that a record has, by 64 of them.
  std::uint64_t mean_bytes();

 private:
  const ConvertedPart& part_;
  BadRecordList list_;
  RecordPacking packing_;
  const std::function<void()>& done_;
};

}  // namespace headrace
