// Returns the error of every source for an index beyond its end.
#pragma once

#include <cstdint>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/source.h"

namespace headrace {

inline DataError no_such_record(const SourceInfo& info, std::uint64_t index) {
  return DataError(ErrorCode::kNotFound, "there is no such record, the source has " + std::to_string(info.records),
                   {.source = info.name, .record = index});
}

}  // namespace headrace
