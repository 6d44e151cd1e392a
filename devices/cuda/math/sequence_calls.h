// Layer normalisation, embedding and attention's mask of GpuKernels: work for rows of features. Private to the
// CUDA backend.
#pragma once

#include <limits>

#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/loss_work.h"

namespace headrace::cuda {

// A row's mean, or its variance, as the loss of a RowLoss: sums are f64.
struct LayerNormMean {
  struct Rows {
    const float* x;
    std::int64_t columns;

    HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t, int) const { return {}; }
    HEADRACE_HOST_DEVICE RowLoss sums(std::int64_t row, int lane, const RowMaximum&) const {
      RowLoss sum{};
      for (std::int64_t c = lane; c < columns; c += kRowLanes)
        sum.loss += static_cast<double>(x[row * columns + c]);
      return sum;
    }
  };
  Rows in;
  float* mean;

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum&, const RowLoss& sum) const {
    if (lane == 0) mean[row] = static_cast<float>(sum.loss / static_cast<double>(in.columns));
  }
};

struct LayerNormResult {
  struct Rows {
    const float* x;
    const float* mean;
    std::int64_t columns;

    HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t, int) const { return {}; }
    HEADRACE_HOST_DEVICE RowLoss sums(std::int64_t row, int lane, const RowMaximum&) const {
      RowLoss sum{};
      for (std::int64_t c = lane; c < columns; c += kRowLanes) {
        const double distance = static_cast<double>(x[row * columns + c]) - static_cast<double>(mean[row]);
        sum.loss += distance * distance;
      }
      return sum;
    }
  };
  Rows in;
  const float *gamma, *beta;  // or null
  float epsilon;
  float* inv_std;
  float* y;

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum&, const RowLoss& sum) const {
    const double variance = sum.loss / static_cast<double>(in.columns);
    const auto scale = static_cast<float>(1 / sqrt(variance + static_cast<double>(epsilon)));
    if (lane == 0) inv_std[row] = scale;
    for (std::int64_t c = lane; c < in.columns; c += kRowLanes) {
      const std::int64_t at = row * in.columns + c;
      const float normalized = (in.x[at] - in.mean[row]) * scale;
      const float scaled = gamma == nullptr ? normalized : normalized * gamma[c];
      y[at] = beta == nullptr ? scaled : scaled + beta[c];
    }
  }
};

// Sums of g = dy gamma, as targets, and of g times the normalized row.
struct LayerNormGradient {
  struct Rows {
    const float *x, *dy;
    const float* gamma;  // or null
    const float *mean, *inv_std;
    std::int64_t columns;

    HEADRACE_HOST_DEVICE float slope(std::int64_t row, std::int64_t c) const {
      const float of = dy[row * columns + c];
      return gamma == nullptr ? of : of * gamma[c];
    }
    HEADRACE_HOST_DEVICE float normalized(std::int64_t row, std::int64_t c) const {
      return (x[row * columns + c] - mean[row]) * inv_std[row];
    }
    HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t, int) const { return {}; }
    HEADRACE_HOST_DEVICE SoftSums sums(std::int64_t row, int lane, const RowMaximum&) const {
      SoftSums sums{};
      for (std::int64_t c = lane; c < columns; c += kRowLanes) {
        sums.targets += slope(row, c);
        sums.weighted += slope(row, c) * normalized(row, c);
      }
      return sums;
    }
  };
  Rows in;
  float* dx;  // may be dy

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum&, const SoftSums& sums) const {
    const auto count = static_cast<float>(in.columns);
    for (std::int64_t c = lane; c < in.columns; c += kRowLanes) {
      const float rest = in.slope(row, c) - sums.targets / count - in.normalized(row, c) * (sums.weighted / count);
      dx[row * in.columns + c] = rest * in.inv_std[row];
    }
  }
};

// Sums over rows of dy, and of dy times the normalized x: the gradients of beta and gamma.
struct LayerNormSums {
  using Total = GradientSums<float>;

  LayerNormGradient::Rows in;
  std::int64_t all_rows;
  float *dgamma, *dbeta;  // or null

  HEADRACE_HOST_DEVICE std::int64_t rows() const { return all_rows; }
  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void add(Nothing, Total (&totals)[kWidth], std::int64_t row, std::int64_t column) const {
    for (int k = 0; k < kWidth; ++k) {
      const float dy = in.dy[row * in.columns + column + k];
      totals[k].dy += dy;
      totals[k].dy_distance += dy * in.normalized(row, column + k);
    }
  }
  HEADRACE_HOST_DEVICE void finish(std::int64_t column, const GradientSums<double>& total) const {
    if (dgamma != nullptr) dgamma[column] = static_cast<float>(total.dy_distance);
    if (dbeta != nullptr) dbeta[column] = static_cast<float>(total.dy);
  }
};

HEADRACE_HOST_DEVICE std::int64_t entry_of(float id, std::int64_t entries) {
  return id >= 0 && id < static_cast<float>(entries) ? static_cast<std::int64_t>(id) : -1;
}

struct Embed {
  const float *ids, *table;
  std::int64_t entries, columns;
  float* y;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    static_assert(kWidth == 1, "rows of the table lie anywhere");
    const std::int64_t entry = entry_of(ids[at / columns], entries);
    y[at] = entry < 0 ? std::numeric_limits<float>::quiet_NaN() : table[entry * columns + at % columns];
  }
};

// A thread adds one column's elements of the entries `part`, `part` + kParts, ... in the order of rows, so that no
// bit depends on the threads.
struct EmbedBackward {
  static constexpr std::int64_t kParts = 256;

  const float *ids, *dy;
  std::int64_t rows, entries, columns;
  float* dtable;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    static_assert(kWidth == 1, "a thread has one column");
    const std::int64_t part = at / columns, column = at % columns;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t entry = entry_of(ids[row], entries);
      if (entry >= 0 && entry % kParts == part) dtable[entry * columns + column] += dy[row * columns + column];
    }
  }
};

// Writes only the scores that are left out.
template <typename T>
struct MaskScores {
  const T* mask;  // or null
  std::int64_t heads, queries, positions;
  bool causal;
  float* scores;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    static_assert(kWidth == 1, "a thread has one score");
    const std::int64_t row = at / positions, s = at % positions;
    const bool later = causal && s > row % queries;
    const bool out = later || (mask != nullptr && value_of(mask[row / (heads * queries) * positions + s]) == 0.0F);
    if (out) scores[at] = kernel::kMaskedScore;
  }
};

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::MaskScores& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    by_type(of.mask.dtype, [&]<typename T>(T) {
      const MaskScores<T> work{of.mask.as<T>(),    of.scores.shape[1], of.scores.shape[2],
                               of.scores.shape[3], of.causal,          of.scores.as<float>()};
      submit_flat<1>(launch, work, of.scores.elements());
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::LayerNormForward& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const auto* x = of.x.as<const float>();
    auto* mean = of.norm.saved_mean.as<float>();
    launch.rows(LayerNormMean{{x, of.x.shape[1]}, mean}, of.x.shape[0]);
    launch.rows(LayerNormResult{{x, mean, of.x.shape[1]},
                                of.norm.gamma.as<const float>(),
                                of.norm.beta.as<const float>(),
                                of.norm.epsilon,
                                of.norm.saved_inv_std.as<float>(),
                                of.y.as<float>()},
                of.x.shape[0]);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::LayerNormBackward& of) {
  launches_.submit(stream, name_of(of), reduction_scratch_bytes(of.x), [=](auto& launch, void* scratch) {
    const LayerNormGradient::Rows in{of.x.as<float>(),
                                     of.dy.as<float>(),
                                     of.norm.gamma.as<float>(),
                                     of.norm.saved_mean.as<float>(),
                                     of.norm.saved_inv_std.as<float>(),
                                     of.x.shape[1]};
    if (of.dgamma.defined() || of.dbeta.defined()) {
      const LayerNormSums sums{in, of.x.shape[0], of.dgamma.as<float>(), of.dbeta.as<float>()};
      launch.template reduce<1>(sums, column_grid(of.x.shape[0], of.x.shape[1], 1), scratch);
    }
    if (of.dx.defined()) launch.rows(LayerNormGradient{in, of.dx.as<float>()}, of.x.shape[0]);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Embed& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const Embed work{of.ids.as<float>(), of.table.as<float>(), of.table.shape[0], of.table.shape[1],
                     of.y.as<float>()};
    submit_flat<1>(launch, work, of.y.elements());
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::EmbedBackward& of) {
  stream.fill(of.dtable.data, 0, of.dtable.bytes());
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const EmbedBackward work{of.ids.as<float>(), of.dy.as<float>(),  of.dy.shape[0],
                             of.dtable.shape[0], of.dtable.shape[1], of.dtable.as<float>()};
    submit_flat<1>(launch, work, EmbedBackward::kParts * of.dtable.shape[1]);
  });
}

}  // namespace headrace::cuda
