// Positions in groups, each group one record of many rows.
#pragma once

#include <cstdint>

#include "headrace/pipeline/plan/index/index_stage.h"

namespace headrace {

class Unbatching {
 public:
  // `size` is a multiple of `rows` > 0.
  Unbatching(std::uint64_t rows, std::uint64_t size) : rows_(rows), size_(size) {}

  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t rows() const noexcept { return rows_; }
  // `position` < size(): where the record of its row is.
  Share locate(std::uint64_t position) const noexcept { return {.part = 0, .position = position / rows_}; }

 private:
  std::uint64_t rows_, size_;
};

}  // namespace headrace
