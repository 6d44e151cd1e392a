// A record that cannot be used: what is known of it, all of a run's counted, and what happens to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/error.h"

namespace HEADRACE_API headrace {

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

class BadRecordTally;

// What happens to it.
enum class OnError {
  kFail,        // the batch's error is thrown where the batch would have been
  kSkip,        // its batch has one example fewer: averages are over those that are there
  kSubstitute,  // another record of the epoch stands in its place, drawn by seed, epoch and record
};

// Which records are bad depends on the data alone, and so does what becomes of them: the stream is the same for
// any number of threads and replicas, with any cache and without, and every window of an image gives the same
// answer (of images: pipeline/decoders/README.md). Reads that the system refused are tried again before they
// count. Running out of memory or of a budget is no record's fault: it always ends the stream. A record that a
// filter could not read or judge is bad wherever it stands in the stream, for as long as the plan lives: it is not
// tried again, and a cache that holds it is not asked.
struct ErrorPolicy {
  OnError on_error = OnError::kFail;
  // A stream that skips or substitutes ends with an error when more examples of one epoch are bad than this share
  // of all that an epoch has, good and bad: 0 allows none, 1 any number, 0.05 of 60 examples 3. The size of an
  // epoch is known before its first batch, so the stream ends at the same record however it is run; only a loader
  // that starts within an epoch counts from there. At any share, an epoch that is skipped from its first to its
  // last example is an error. Of a stream, whose length is unknown, 10,000 examples in a row count as an epoch.
  double max_bad_share = 0.01;
  // A line of JSON for each bad record, in the order of the stream: source, record, name, offset, operation,
  // cause, code, epoch, step (both but for convert_dataset()), action, substitute. Records that were used though
  // their file is damaged, which changed no pixel, are listed, too: their action is "used", and they have
  // "warning": true. Appended to; a loader lists a record once. Empty: none is written.
  std::filesystem::path quarantine = {};
  // Told of every record that is skipped or replaced; null: nobody is.
  std::shared_ptr<BadRecordTally> tally = {};
};

// "fail", "skip" or "substitute"; ConfigError for another word.
OnError parse_on_error(const std::string& word);
const char* to_string(OnError on_error) noexcept;

}  // namespace headrace
