// A record that a filter could not read or judge, met where it stands in the stream.
#pragma once

#include <string>

#include "headrace/pipeline/tasks/failure.h"

namespace headrace {

// Of the operation and the cause that were found then.
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
