// Sums over the rows of a matrix, and the merging of two parts of such a sum. f32 within a block of threads,
// f64 over blocks: the error does not grow with the number of rows. Private to the CUDA backend.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headrace/devices/cuda/element.h"
#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// Without constructors, so that they may be in shared memory; {} is the empty sum.
template <typename Real>
struct Sum {
  Real value;
};
// Mean, and the sum of squared distances from it.
template <typename Real>
struct Moments {
  Real count, mean, deviation;
};
// Sums of dy, and of dy times x's distance from its mean.
template <typename Real>
struct GradientSums {
  Real dy, dy_distance;
};

template <typename Real>
HEADRACE_HOST_DEVICE Sum<Real> merged(const Sum<Real>& a, const Sum<Real>& b) {
  return {a.value + b.value};
}
template <typename Real>
HEADRACE_HOST_DEVICE GradientSums<Real> merged(const GradientSums<Real>& a, const GradientSums<Real>& b) {
  return {a.dy + b.dy, a.dy_distance + b.dy_distance};
}
// Chan, Golub, LeVeque: no squares of large numbers are ever subtracted.
template <typename Real>
HEADRACE_HOST_DEVICE Moments<Real> merged(const Moments<Real>& a, const Moments<Real>& b) {
  if (b.count == 0) return a;
  if (a.count == 0) return b;
  const Real count = a.count + b.count;
  const Real step = b.mean - a.mean;
  const Real share = b.count / count;
  return {count, a.mean + step * share, a.deviation + b.deviation + step * step * (a.count * share)};
}

// Moments as sums about a pivot near the mean, which merge by additions alone.
struct PivotSums {
  double count, distance, squares;
};

// Returns a block's total as a part of the total of all blocks, `first` being the first block's. Its mean is
// the pivot: the first block alone makes the variance so large that squares of distances from it lose nothing
// in f64.
HEADRACE_HOST_DEVICE Sum<double> wide(const Sum<float>& of, const Sum<float>&) { return {of.value}; }
HEADRACE_HOST_DEVICE GradientSums<double> wide(const GradientSums<float>& of, const GradientSums<float>&) {
  return {of.dy, of.dy_distance};
}
HEADRACE_HOST_DEVICE PivotSums wide(const Moments<float>& of, const Moments<float>& first) {
  const double count = of.count, distance = static_cast<double>(of.mean) - static_cast<double>(first.mean);
  return {count, count * distance, of.deviation + count * (distance * distance)};
}
HEADRACE_HOST_DEVICE PivotSums merged(const PivotSums& a, const PivotSums& b) {
  return {a.count + b.count, a.distance + b.distance, a.squares + b.squares};
}

// Returns the total of a column from that of its parts.
template <typename Wide, typename Total>
HEADRACE_HOST_DEVICE Wide completed(const Wide& total, const Total&) {
  return total;
}
HEADRACE_HOST_DEVICE Moments<double> completed(const PivotSums& total, const Moments<float>& first) {
  if (total.count == 0) return {};
  const double distance = total.distance / total.count;
  const double deviation = total.squares - total.distance * distance;
  return {total.count, first.mean + distance, deviation <= 0 ? 0 : deviation};
}

// The leading rows of a matrix that belong to real examples; all of them without `scalars`.
struct RealRows {
  const StepScalars* scalars;
  std::int64_t rows_per_example;
  std::int64_t all;

  HEADRACE_HOST_DEVICE std::int64_t count() const {
    if (scalars == nullptr) return all;
    const std::int64_t real = scalars->rows * rows_per_example;
    return real < all ? real : all;
  }
};

// Totals merge as a tree of this radix: few barriers, and the loads of a merge do not wait for each other.
inline constexpr int kRadix = 8;

// Returns the sum of kRadix totals, `stride` apart, in order.
template <typename Total>
HEADRACE_HOST_DEVICE Total radix_total(const Total* totals, int stride) {
  Total sum = totals[0];
  for (int i = 1; i < kRadix; ++i) sum = merged(sum, totals[i * stride]);
  return sum;
}

// The last pass over block totals: 4 columns and 64 lanes per block of threads. A lane loads its share of 528
// totals before it adds the first.
inline constexpr int kFinishColumns = 4, kFinishLanes = 64, kFinishLoads = 9;

// A lane's share of one column's totals, in the order of blocks. REQUIRES: fewer than 2^31 totals.
template <typename Total>
HEADRACE_HOST_DEVICE auto lane_total(const Total* totals, std::int64_t blocks, std::int64_t columns,
                                     std::int64_t column, int lane) {
  const auto across = static_cast<std::uint32_t>(columns), own = static_cast<std::uint32_t>(column);
  const auto end = static_cast<std::uint32_t>(blocks), begin = static_cast<std::uint32_t>(lane);
  const Total first = totals[own];
  decltype(wide(Total{}, Total{})) sum{};
  HEADRACE_ROLLED
  for (std::uint32_t block = begin; block < end; block += kFinishLoads * kFinishLanes) {
    Total loaded[kFinishLoads];  // beyond the last block the lane's first again, which is not added
    for (std::uint32_t i = 0; i < kFinishLoads; ++i) {
      const std::uint32_t at = block + i * kFinishLanes;
      loaded[i] = totals[(at < end ? at : begin) * across + own];
    }
    for (std::uint32_t i = 0; i < kFinishLoads; ++i) {
      if (block + i * kFinishLanes < end) sum = merged(sum, wide(loaded[i], first));
    }
  }
  return sum;
}

// Sums over the rows of a matrix as work for threads.

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
  by_type(matrix.dtype, [&]<typename T>(T) {
    const std::int64_t columns = matrix.shape.back();
    const ColumnSums<T> work{matrix.as<T>(), matrix.elements() / columns, columns, sums.as<float>()};
    constexpr int kWidth = kPackWidth<T>;
    by_width<kWidth>(columns % kWidth == 0 && packs_fit(kWidth, matrix), [&](auto width) {
      launch.template reduce<width()>(work, column_grid(work.all_rows, columns, width()), scratch);
    });
  });
}

}  // namespace headrace::cuda
