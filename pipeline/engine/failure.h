// Why a batch could not be made; kept with the batch until a consumer asks for it.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/source.h"

namespace headrace {

struct Failure {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string hint;
  DataLocation location;  // empty where no record is to blame
  std::int64_t row = 0;   // in the global batch; the smallest one is reported

  // `cause` happened while `record` of `source` was read or worked on.
  static Failure of_record(const Source& source, std::uint64_t record, std::int64_t row,
                           const std::exception& cause);
  // `cause` concerns the batch as a whole.
  static Failure of_batch(const std::exception& cause);

  // Throws it as DataError, or as Error where no record is to blame. May be called from several threads.
  [[noreturn]] void raise() const;
};

}  // namespace headrace
