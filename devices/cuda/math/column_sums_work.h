// Sums over the rows of a matrix as work for threads. Private to the CUDA backend.
#pragma once

#include <algorithm>

#include "headrace/devices/cuda/element.h"
#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/math/column_totals.h"

namespace headrace::cuda {

// Returns enough scratch for the block totals of any reduction over such a matrix, whatever its threads' width.
inline std::size_t reduction_scratch_bytes(const TensorView& matrix) {
  const std::int64_t columns = matrix.shape.back();
  std::int64_t blocks = 0;
  for (const int width : {1, kNarrowWidth, kPackWidth<BFloat16>}) {
    blocks = std::max(blocks, column_grid(matrix.elements() / columns, columns, width).row_blocks);
  }
  return static_cast<std::size_t>(blocks * columns) * sizeof(Moments<float>);
}

template <typename T>
struct ColumnSums {
  using Total = Sum<float>;

  const T* x;
  std::int64_t all_rows, columns;
  float* sums;

  HEADRACE_HOST_DEVICE std::int64_t rows() const { return all_rows; }
  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void add(Nothing, Total (&totals)[kWidth], std::int64_t row, std::int64_t column) const {
    const Pack<T, kWidth> pack = load_pack<kWidth>(x + row * columns + column);
    for (int k = 0; k < kWidth; ++k) totals[k].value += value_of(pack.values[k]);
  }
  HEADRACE_HOST_DEVICE void finish(std::int64_t column, const Sum<double>& total) const {
    sums[column] = static_cast<float>(total.value);
  }
};

template <typename Launcher>
void submit_column_sums(Launcher& launch, const TensorView& matrix, const TensorView& sums, void* scratch) {
  by_type(matrix.dtype, [&](auto type) {
    using T = decltype(type);
    const std::int64_t columns = matrix.shape.back();
    const ColumnSums<T> work{matrix.as<T>(), matrix.elements() / columns, columns, sums.as<float>()};
    constexpr int kWidth = kPackWidth<T>;
    by_width<kWidth>(columns % kWidth == 0 && packs_fit(kWidth, matrix), [&](auto width) {
      launch.template reduce<width()>(work, column_grid(work.all_rows, columns, width()), scratch);
    });
  });
}

}  // namespace headrace::cuda
