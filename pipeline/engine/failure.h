// Why a batch, or one row of it, could not be made; kept with the batch until a consumer asks for it.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/source.h"

namespace headrace {

struct Failure {
  BadRecord what = {};  // no source where no record is to blame; the smallest row is reported
  std::string hint = {};

  // `cause` happened while `record` of `source` was read or worked on.
  static Failure of_record(const Source& source, std::uint64_t record, std::int64_t row,
                           const std::exception& cause);
  // `cause` concerns the batch as a whole.
  static Failure of_batch(const std::exception& cause);

  // True where the record is at fault, not the machine: another record may well do.
  bool is_of_record() const noexcept;
  // Throws it as DataError, or as Error where no record is to blame. May be called from several threads.
  [[noreturn]] void raise() const;
};

}  // namespace headrace
