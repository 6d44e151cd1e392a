// What happens to a record that cannot be read, decoded or worked on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace headrace {

class BadRecordTally;

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
  // last example is an error.
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
