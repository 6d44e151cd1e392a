// Where a position of a combined stream comes from.
#pragma once

#include <cstdint>

namespace headrace {

struct Share {
  std::size_t part = 0;
  std::uint64_t position = 0;  // in the part's epoch; beyond its end: the part has started again
};

}  // namespace headrace
