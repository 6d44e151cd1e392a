// How many records may be bad, and the errors where more are, or all.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/pipeline/bad_record.h"

namespace headrace {

// Of a whole whose size is known beforehand. Immutable.
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

}  // namespace headrace
