// Why a batch, or one row of it, could not be made; kept with the batch until a consumer asks for it.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/source.h"

namespace headrace {

// Stands for what a user's function threw that is no std::exception.
class UnnamedException final : public std::exception {
 public:
  const char* what() const noexcept override { return "an exception that is no std::exception"; }
};

struct Failure {
  BadRecord what = {};  // no source where no record is to blame; the smallest row is reported
  std::string hint = {};
  std::string device = {};  // whose call failed; empty: none did

  // `cause` happened while `record` of `source` was read or worked on.
  static Failure of_record(const Source& source, std::uint64_t record, std::int64_t row,
                           const std::exception& cause);
  // `cause` concerns the batch as a whole.
  static Failure of_batch(const std::exception& cause);

  // `cause` ended a thread that was doing this; empty: nothing is known.
  static Failure of_thread(const std::exception& cause, const std::string& doing) noexcept;

  // True where the record is at fault, not the machine: another record may well do.
  bool is_of_record() const noexcept;
  // Throws it as DataError, or where no record is to blame as DeviceError or Error. May be called from several
  // threads.
  [[noreturn]] void raise() const;
};

// A record that a filter could not read or judge, met where it stands in the stream. Of the operation and the
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
