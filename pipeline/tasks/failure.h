// Why a batch, or one row of it, could not be made; kept with the batch until a consumer requests it.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/source.h"

namespace headrace {

// Replaces an exception of user code that is not a std::exception.
class UnnamedException final : public std::exception {
 public:
  const char* what() const noexcept override { return "an exception that is no std::exception"; }
};

struct Failure {
  BadRecord what = {};  // without a source if no record is at fault; the smallest row is reported
  std::string hint = {};
  std::string device = {};  // the device whose call failed; empty: none

  // Returns the failure for a `cause` that happened while `record` of `source` was read or processed.
  static Failure of_record(const Source& source, std::uint64_t record, std::int64_t row,
                           const std::exception& cause);
  // Returns the failure for a `cause` that concerns the whole batch.
  static Failure of_batch(const std::exception& cause);

  // Returns the failure for a `cause` that ended a thread that was `doing` this; empty: unknown.
  static Failure of_thread(const std::exception& cause, const std::string& doing) noexcept;

  // Returns whether the record is at fault, not the machine: another record may succeed.
  bool is_of_record() const noexcept;
  // Throws it as DataError or, if no record is at fault, as DeviceError or Error. May be called by several
  // threads.
  [[noreturn]] void raise() const;
};

// Thrown at the stream position of a record that a filter could not read or judge, with the operation and the
// cause that were found then.
class FilterError final : public DataError {
 public:
  explicit FilterError(const Failure& failure)
      : DataError(failure.what.code, describe(failure.what),
                  {.source = failure.what.source, .record = failure.what.record, .offset = failure.what.offset},
                  failure.hint),
        operation_(failure.what.operation),
        cause_(failure.what.cause) {}

  const std::string& operation() const noexcept { return operation_; }
  const std::string& cause() const noexcept { return cause_; }

 private:
  std::string operation_, cause_;
};

}  // namespace headrace
