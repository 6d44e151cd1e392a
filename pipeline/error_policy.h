// What happens to a record that cannot be read, decoded or worked on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace headrace {

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
  // More bad records than this share of all handed out so far, and more than always_allowed: the stream ends with
  // an error that says so. Counted by each loader from where it starts.
  double most_bad = 0.01;
  std::uint64_t always_allowed = 16;
  // A line of JSON for each bad record, in the order of the stream: source, record, name, offset, operation,
  // cause, code, epoch, step, action, substitute. Records that were used though their file is damaged, which
  // changed no pixel, are listed, too: their action is "used", and they have "warning": true. Appended to; a
  // loader lists a record once. Empty: none is written.
  std::filesystem::path quarantine = {};
};

// "fail", "skip" or "substitute"; ConfigError for another word.
OnError parse_on_error(const std::string& word);
const char* to_string(OnError on_error) noexcept;

}  // namespace headrace
