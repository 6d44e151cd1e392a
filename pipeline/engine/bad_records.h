// What an ErrorPolicy asks for: a limit for bad records, and the file that lists them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_set>

#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/batch.h"

namespace headrace {

// How many records may be bad, and the errors where more are, or all. Of a whole whose size is known beforehand.
// Immutable.
class BadRecordLimit {
 public:
  // `whole` says what the `size` records are, as "60 examples of an epoch". ConfigError where
  // ErrorPolicy::max_bad_share is no share.
  BadRecordLimit(const ErrorPolicy& policy, std::uint64_t size, std::string whole);

  // ErrorPolicy::max_bad_share of the whole, rounded down: 29 of 100 at 0.29.
  std::uint64_t max_bad() const noexcept { return max_bad_; }
  // DataError: with `last` there are more bad ones than may be.
  [[noreturn]] void refuse(const BadRecord& last) const;
  // DataError: there is no good one; `last` was the last hope.
  [[noreturn]] void refuse_all(const BadRecord& last) const;

 private:
  [[noreturn]] void raise(const std::string& what, const BadRecord& last, const std::string& remedy) const;

  std::string whole_;
  double share_;
  std::string quarantine_;  // empty: none is written
  std::uint64_t max_bad_;
};

// The file of bad records, and of those that were used though something is wrong with them. Not thread-safe;
// several of them, in several processes, may share one file.
class Quarantine {
 public:
  // Makes the file where there is none, so that a path that cannot be written fails at once, as DataError.
  explicit Quarantine(const std::filesystem::path& path);

  // A line, unless the record has one. Without `at` it names no epoch and step. DataError where it cannot be
  // written.
  void add(const BadRecord& bad, OnError action, const std::optional<BatchPosition>& at = {});
  // The same of a record that was used: its action is "used", and it has "warning": true.
  void add_warning(const BadRecord& warned, const BatchPosition& at);

 private:
  void append(const BadRecord& bad, const std::optional<BatchPosition>& at, const char* action, bool warning);

  std::filesystem::path path_;
  std::unordered_set<std::uint64_t> listed_;
};

}  // namespace headrace
