// A record that could not be used, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headrace/devices/base/error.h"

namespace headrace {

struct BadRecord {
  ErrorCode code = ErrorCode::kInternal;
  std::string source = {};  // a path, or a name for data in memory
  std::uint64_t record = DataLocation::kUnknown;
  std::string name = {};                          // "train/cat/0007.jpg"
  std::uint64_t offset = DataLocation::kUnknown;  // of the byte at fault within the source, where it is known
  std::string operation = {};                     // "source read", "decode", "map user_map 'blur'"
  std::string cause = {};
  std::optional<std::uint64_t> substitute = {};  // the record that stands in its place
  std::int64_t row = 0;                          // where it stands, or would, in the global batch
};

// "name: operation: cause"
std::string describe(const BadRecord& bad);

}  // namespace headrace
