// Unusable records: their description, their count over a run, and the policy for them.
#pragma once

#include <array>
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
#include "headrace/devices/base/option_visitor.h"

namespace HEADRACE_API headrace {

struct SourceInfo;

struct BadRecord {
  ErrorCode code = ErrorCode::kInternal;
  std::string source = {};  // a path, or a name for data in memory
  std::uint64_t record = DataLocation::kUnknown;
  std::string name = {};                          // "train/cat/0007.jpg"
  std::uint64_t offset = DataLocation::kUnknown;  // of the faulty byte within the source, if known
  std::string operation = {};                     // "source read", "decode", "map user_map 'blur'"
  std::string cause = {};
  std::optional<std::uint64_t> substitute = {};  // the record that replaces it
  std::int64_t row = 0;                          // its (intended) row in the global batch
};

// Returns "name: operation: cause".
std::string describe(const BadRecord& bad);

// Counts the records that were skipped or replaced, each once, over several loaders, splits and epochs.
// Thread-safe.
class BadRecordTally {
 public:
  struct Count {
    std::uint64_t bad = 0;
    std::uint64_t records = 0;            // in all sources read
    std::optional<BadRecord> first = {};  // the first one met
  };

  // Announces a source whose records will be read. A source announced before is the same source.
  void begin(const SourceInfo& source);
  void add(const SourceInfo& source, const BadRecord& bad);

  Count count() const;

 private:
  mutable std::mutex mutex_;
  std::set<std::uint64_t> sources_;                            // by fingerprint
  std::set<std::pair<std::uint64_t, std::uint64_t>> counted_;  // by fingerprint of the source and record
  Count count_;
};

// The action on a bad record.
enum class OnError {
  kFail,        // the batch's error is thrown in place of the batch
  kSkip,        // its batch has one example fewer: averages are over the rest
  kSubstitute,  // another record of the epoch replaces it, drawn by seed, epoch and record
};
constexpr std::array<const char*, 3> choice_names(OnError /*of*/) { return {"fail", "skip", "substitute"}; }

// Which records are bad depends on the data alone, and so does their handling: the stream is the same for any
// number of threads and replicas, with or without any cache, and every window of an image gives the same answer
// (for images see pipeline/decoders/README.md). Reads that the system refused are retried before they count.
// Running out of memory or of a budget is no record's fault: it always ends the stream. A record that a filter
// could not read or judge is bad wherever it stands in the stream, for as long as the plan lives: it is not
// retried, and a cache that holds it is not asked.
struct ErrorPolicy {
  OnError on_error = OnError::kFail;
  // The share of all examples of an epoch, good and bad: 0.05 of 60 examples are 3. The size of an epoch is known
  // before its first batch, so the stream always ends at the same record; only a loader that starts within an
  // epoch counts from there. At any share, an epoch that is skipped from its first to its last example is an
  // error. In a stream of unknown length, 10,000 examples in a row count as an epoch.
  double max_bad_share = 0.01;
  // In the order of the stream: source, record, name, offset, operation, cause, code, epoch, step (both except for
  // convert_dataset()), action, substitute. Records used although their file is damaged, without a changed pixel,
  // are listed, too, with the action "used" and "warning": true. A loader lists a record once.
  std::filesystem::path quarantine = {};
  // Counts every record that is skipped or replaced; may be null.
  std::shared_ptr<BadRecordTally> tally = {};
  void each_field(OptionVisitor& visit) {
    visit("on_error", on_error, "What happens to a record that cannot be used.");
    visit("max_bad_share", max_bad_share,
          "A run that skips or substitutes ends when more of an epoch is bad than this share of it: 0 allows "
          "none, 1 "
          "any number.");
    visit("quarantine", quarantine, "A file to which a line of JSON is appended for each bad record.");
  }
};

// Parses "fail", "skip" or "substitute". Throws ConfigError for any other word.
OnError parse_on_error(const std::string& word);
const char* to_string(OnError on_error) noexcept;

}  // namespace headrace
