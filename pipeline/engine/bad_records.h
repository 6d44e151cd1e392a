// Implements an ErrorPolicy: the limit for bad records, and the file that lists them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_set>

#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/batch.h"

namespace headrace {

// The maximum of bad records in a whole of known size, and the errors if more, or all, are bad. Immutable.
class BadRecordLimit {
 public:
  // `whole` describes the `size` records, such as "60 examples of an epoch". Throws ConfigError if
  // ErrorPolicy::max_bad_share is not a share.
  BadRecordLimit(const ErrorPolicy& policy, std::uint64_t size, std::string whole);

  // Returns ErrorPolicy::max_bad_share of the whole, rounded down: 29 of 100 at 0.29.
  std::uint64_t max_bad() const noexcept { return max_bad_; }
  // Throws DataError: `last` exceeds the maximum of bad records.
  [[noreturn]] void refuse(const BadRecord& last) const;
  // Throws DataError: no record is good; `last` was the last one tried.
  [[noreturn]] void refuse_all(const BadRecord& last) const;

 private:
  [[noreturn]] void raise(const std::string& what, const BadRecord& last, const std::string& remedy) const;

  std::string whole_;
  double share_;
  std::string quarantine_;  // empty: no file is written
  std::uint64_t max_bad_;
};

// The file of bad records, and of those used although something is wrong with them. Not thread-safe; several
// objects, in several processes, may share one file.
class Quarantine {
 public:
  // Creates the file if there is none. Throws DataError at once if the path cannot be written.
  explicit Quarantine(const std::filesystem::path& path);

  // Adds a line, unless the record has one. Without `at` it names no epoch and step. Throws DataError if it cannot
  // be written.
  void add(const BadRecord& bad, OnError action, const std::optional<BatchPosition>& at = {});
  // Adds a line for a record that was used: its action is "used", and it has "warning": true.
  void add_warning(const BadRecord& warned, const BatchPosition& at);

 private:
  void append(const BadRecord& bad, const std::optional<BatchPosition>& at, const char* action, bool warning);

  std::filesystem::path path_;
  std::unordered_set<std::uint64_t> listed_;
};

}  // namespace headrace
