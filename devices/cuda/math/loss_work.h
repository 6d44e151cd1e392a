// Softmax and its cross-entropy as work for warps, one row each. Private to the CUDA backend.
#pragma once

#include <cmath>
#include <limits>

#include "headrace/devices/cuda/element.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

inline constexpr int kRowLanes = 32;  // a warp

struct RowMaximum {
  float value;
  std::int64_t index;  // of the first maximum
};
HEADRACE_HOST_DEVICE RowMaximum merged(const RowMaximum& a, const RowMaximum& b) {
  const bool second = b.value > a.value || (b.value == a.value && b.index < a.index);
  return second ? b : a;
}

// Sums of e^(z - maximum), and of (z - maximum).
struct RowSums {
  float exp_sum, total;
};
HEADRACE_HOST_DEVICE RowSums merged(const RowSums& a, const RowSums& b) {
  return {a.exp_sum + b.exp_sum, a.total + b.total};
}

// One lane's part of a row of logits.
struct LogitRows {
  const float* logits;
  std::int64_t classes;

  HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t row, int lane) const {
    const float* z = logits + row * classes;
    // A lane without a class loses to any lane with one.
    if (lane >= classes)
      return {-std::numeric_limits<float>::infinity(), std::numeric_limits<std::int64_t>::max()};
    RowMaximum best{z[lane], lane};
    for (std::int64_t k = lane + kRowLanes; k < classes; k += kRowLanes) {
      if (z[k] > best.value) best = {z[k], k};
    }
    return best;
  }
  HEADRACE_HOST_DEVICE RowSums sums(std::int64_t row, int lane, const RowMaximum& maximum) const {
    const float* z = logits + row * classes;
    RowSums sums{};
    for (std::int64_t k = lane; k < classes; k += kRowLanes) {
      sums.exp_sum += expf(z[k] - maximum.value);
      sums.total += z[k] - maximum.value;
    }
    return sums;
  }
};

// The gradient of softmax's input.
struct SoftmaxGradientRows {
  struct Rows {
    const float* p;
    const float* dy;
    std::int64_t classes;

    HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t, int) const { return {}; }
    HEADRACE_HOST_DEVICE RowSums sums(std::int64_t row, int lane, const RowMaximum&) const {
      RowSums sums{};
      for (std::int64_t k = row * classes + lane; k < (row + 1) * classes; k += kRowLanes) {
        sums.total += p[k] * dy[k];
      }
      return sums;
    }
  };
  Rows in;
  float* dx;

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum&, const RowSums& sums) const {
    for (std::int64_t k = row * in.classes + lane; k < (row + 1) * in.classes; k += kRowLanes) {
      dx[k] = in.p[k] * (in.dy[k] - sums.total);
    }
  }
};

struct SoftmaxRows {
  LogitRows in;
  float* probabilities;

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum& maximum,
                                  const RowSums& sums) const {
    const float* z = in.logits + row * in.classes;
    float* p = probabilities + row * in.classes;
    const float inverse = 1.0F / sums.exp_sum;
    for (std::int64_t k = lane; k < in.classes; k += kRowLanes) p[k] = expf(z[k] - maximum.value) * inverse;
  }
};

// The contribution of one row to the metrics.
struct RowLoss {
  double loss;
  std::int64_t correct;
};
HEADRACE_HOST_DEVICE RowLoss merged(const RowLoss& a, const RowLoss& b) {
  return {a.loss + b.loss, a.correct + b.correct};
}

// The factor of a row's loss and gradient.
HEADRACE_HOST_DEVICE float weight_of(const float* weights, std::int64_t row) {
  return weights == nullptr ? 1.0F : weights[row];
}

struct CrossEntropyRows {
  LogitRows in;
  const std::int64_t* labels;
  float smoothing;
  const StepScalars* scalars;
  const float* weights;  // or null
  float* dlogits;        // or null
  RowLoss* losses;       // one per row

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum& maximum,
                                  const RowSums& sums) const {
    const bool real = row < scalars->rows;
    const std::int64_t label = real ? labels[row] : -1;  // padding is treated as an invalid label
    const bool known = label >= 0 && label < in.classes;
    if (dlogits != nullptr) write_gradient(row, lane, maximum, sums, known ? label : -1);
    if (lane == 0) losses[row] = real ? loss(row, maximum, sums, label, known) : RowLoss{};
  }

  // Writes 0 for a row whose label is unknown (-1).
  HEADRACE_HOST_DEVICE void write_gradient(std::int64_t row, int lane, const RowMaximum& maximum,
                                           const RowSums& sums, std::int64_t label) const {
    const float* z = in.logits + row * in.classes;
    float* gradient = dlogits + row * in.classes;
    const float factor = scalars->inverse_global_rows * (label < 0 ? 0.0F : weight_of(weights, row));
    const float inverse = 1.0F / sums.exp_sum;
    const float smooth = smoothing / static_cast<float>(in.classes);
    for (std::int64_t k = lane; k < in.classes; k += kRowLanes) {
      const float target = k == label ? smooth + (1.0F - smoothing) : smooth;
      gradient[k] = label < 0 ? 0.0F : (expf(z[k] - maximum.value) * inverse - target) * factor;
    }
  }

  HEADRACE_HOST_DEVICE RowLoss loss(std::int64_t row, const RowMaximum& maximum, const RowSums& sums,
                                    std::int64_t label, bool known) const {
    if (!known) return {std::numeric_limits<double>::quiet_NaN(), 0};
    const double distance = in.logits[row * in.classes + label] - maximum.value;
    const double smooth = smoothing / static_cast<float>(in.classes);
    const double target = static_cast<double>(1.0F - smoothing) * distance;
    const double loss = log(static_cast<double>(sums.exp_sum)) - target - smooth * static_cast<double>(sums.total);
    const bool correct = maximum.index == label && sums.exp_sum == sums.exp_sum;  // no row with NaN
    return {static_cast<double>(weight_of(weights, row)) * loss, correct ? 1 : 0};
  }
};

// Adds the real rows' losses to the metrics, by one block of threads.
struct MetricTotal {
  const RowLoss* losses;
  std::int64_t all_rows;
  const StepScalars* scalars;
  MetricSums* sums;
  std::int64_t rows_per_example = 1;

  // Sums rows `thread`, thread + threads, ...
  HEADRACE_HOST_DEVICE RowLoss part(int thread, int threads) const {
    const std::int64_t real = scalars->rows * rows_per_example, rows = real < all_rows ? real : all_rows;
    RowLoss total{};
    for (std::int64_t row = thread; row < rows; row += threads) total = merged(total, losses[row]);
    return total;
  }
  HEADRACE_HOST_DEVICE void finish(const RowLoss& total) const {
    sums->loss += total.loss;
    sums->correct += total.correct;
    sums->examples += scalars->rows;
  }
};

inline std::size_t loss_scratch_bytes(const TensorView& logits) {
  return static_cast<std::size_t>(logits.shape[0]) * sizeof(RowLoss);
}

// Sums of e^(z - maximum), of the targets, and of target * (z - maximum).
struct SoftSums {
  float exp_sum, targets, weighted;
};
HEADRACE_HOST_DEVICE SoftSums merged(const SoftSums& a, const SoftSums& b) {
  return {a.exp_sum + b.exp_sum, a.targets + b.targets, a.weighted + b.weighted};
}

// Sums of x^2, of t^2, and of x t.
struct CosineSums {
  float squares, target_squares, products;
};
HEADRACE_HOST_DEVICE CosineSums merged(const CosineSums& a, const CosineSums& b) {
  return {a.squares + b.squares, a.target_squares + b.target_squares, a.products + b.products};
}

struct SoftLogitRows {
  LogitRows logits;
  const float* given;
  float kept, smooth;  // the target is kept * given + smooth

  HEADRACE_HOST_DEVICE float target(std::int64_t at) const { return kept * given[at] + smooth; }
  HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t row, int lane) const { return logits.maximum(row, lane); }
  HEADRACE_HOST_DEVICE SoftSums sums(std::int64_t row, int lane, const RowMaximum& maximum) const {
    SoftSums sums{};
    for (std::int64_t k = row * logits.classes + lane; k < (row + 1) * logits.classes; k += kRowLanes) {
      const float distance = logits.logits[k] - maximum.value;
      sums.exp_sum += expf(distance);
      sums.targets += target(k);
      sums.weighted += target(k) * distance;
    }
    return sums;
  }
};

struct SoftCrossEntropyRows {
  SoftLogitRows in;
  const StepScalars* scalars;
  const float* weights;  // or null
  float* dlogits;        // or null
  RowLoss* losses;       // one per row

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum& maximum,
                                  const SoftSums& sums) const {
    const bool real = row < scalars->rows;
    if (dlogits != nullptr) write_gradient(row, lane, maximum, sums, real);
    if (lane != 0) return;
    losses[row] = {};
    if (!real) return;
    const double loss = static_cast<double>(sums.targets) * log(static_cast<double>(sums.exp_sum)) -
                        static_cast<double>(sums.weighted);
    losses[row].loss = static_cast<double>(weight_of(weights, row)) * loss;
  }

  HEADRACE_HOST_DEVICE void write_gradient(std::int64_t row, int lane, const RowMaximum& maximum,
                                           const SoftSums& sums, bool real) const {
    const LogitRows& z = in.logits;
    const float factor = scalars->inverse_global_rows * (real ? weight_of(weights, row) : 0.0F);
    const float share = sums.targets / sums.exp_sum;
    for (std::int64_t k = row * z.classes + lane; k < (row + 1) * z.classes; k += kRowLanes) {
      dlogits[k] = real ? (expf(z.logits[k] - maximum.value) * share - in.target(k)) * factor : 0.0F;
    }
  }
};

}  // namespace headrace::cuda
