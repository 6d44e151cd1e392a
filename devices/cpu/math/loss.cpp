#include "headrace/devices/cpu/math/loss.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/cpu/math/vector_math.h"
#include "headrace/devices/cpu/math/workspace.h"

namespace headrace::cpu {
namespace {

struct RowMaximum {
  float value;
  std::int64_t index;  // the first that has it
};

HEADRACE_INLINE RowMaximum row_maximum(const float* row, std::int64_t classes) {
  RowMaximum maximum{row[0], 0};
  for (std::int64_t k = 1; k < classes; ++k) {
    if (row[k] > maximum.value) maximum = {row[k], k};
  }
  return maximum;
}

// exps[k] = e^(row[k] - maximum). Returns their sum, and the row's own sum in `total`. Both are added in kLanes
// interleaved parts, the same ones whatever the vector width.
HEADRACE_INLINE float exponentials(const float* row, float maximum, float* exps, std::int64_t classes,
                                   float& total) {
  constexpr std::int64_t kLanes = 16;
  float exp_sums[kLanes] = {};
  float sums[kLanes] = {};
  std::int64_t k = 0;
  for (; k + kLanes <= classes; k += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const float e = fast_exp(row[k + lane] - maximum);
      exps[k + lane] = e;
      exp_sums[lane] += e;
      sums[lane] += row[k + lane] - maximum;
    }
  }
  for (std::int64_t lane = 0; k < classes; ++k, ++lane) {
    const float e = fast_exp(row[k] - maximum);
    exps[k] = e;
    exp_sums[lane] += e;
    sums[lane] += row[k] - maximum;
  }
  float exp_sum = 0;
  total = 0;
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    exp_sum += exp_sums[lane];
    total += sums[lane];
  }
  return exp_sum;
}

HEADRACE_SIMD_MATH void softmax_rows(const float* logits, float* probabilities, std::int64_t rows,
                                     std::int64_t classes) {
  for (std::int64_t row = 0; row < rows; ++row, logits += classes, probabilities += classes) {
    float total;
    const float inverse =
        1.0F / exponentials(logits, row_maximum(logits, classes).value, probabilities, classes, total);
    for (std::int64_t k = 0; k < classes; ++k) probabilities[k] *= inverse;
  }
}

// What a row's loss is made of: log of the sum of e^(z - max), sum of (z - max).
struct RowSums {
  float exp_sum;
  float total;
  RowMaximum maximum;
};

// Writes the row's gradient for a target of `smooth` everywhere (the label's share is taken off by the caller).
HEADRACE_SIMD_MATH void loss_row(const float* logits, float* gradient, std::int64_t classes, float smooth,
                                 float factor, RowSums& sums) {
  sums.maximum = row_maximum(logits, classes);
  sums.exp_sum = exponentials(logits, sums.maximum.value, gradient, classes, sums.total);
  const float inverse = 1.0F / sums.exp_sum;
  for (std::int64_t k = 0; k < classes; ++k) gradient[k] = (gradient[k] * inverse - smooth) * factor;
}

// What a row's loss against targets t is made of: log of the sum of e^(z - max), sum of t, sum of t (z - max).
struct SoftRowSums {
  float exp_sum;
  double total;
  double weighted;
};

// Writes the row's gradient for the targets (1 - smoothing) t + smooth.
HEADRACE_SIMD_MATH void soft_loss_row(const float* logits, const float* targets, float* gradient,
                                      std::int64_t classes, float smoothing, float factor, SoftRowSums& sums) {
  const RowMaximum maximum = row_maximum(logits, classes);
  float unused;
  const float exp_sum = exponentials(logits, maximum.value, gradient, classes, unused);
  const float smooth = smoothing / static_cast<float>(classes), kept = 1.0F - smoothing;
  double total = 0, weighted = 0;
  for (std::int64_t k = 0; k < classes; ++k) {
    const double target = kept * targets[k] + smooth;
    total += target;
    weighted += target * static_cast<double>(logits[k] - maximum.value);
  }
  const auto share = static_cast<float>(total) / exp_sum;
  for (std::int64_t k = 0; k < classes; ++k) {
    gradient[k] = (gradient[k] * share - (kept * targets[k] + smooth)) * factor;
  }
  sums = {.exp_sum = exp_sum, .total = total, .weighted = weighted};
}

HEADRACE_SIMD_MATH void softmax_gradient_rows(const float* p, const float* dy, float* dx, std::int64_t rows,
                                              std::int64_t classes) {
  for (std::int64_t row = 0; row < rows; ++row, p += classes, dy += classes, dx += classes) {
    float mean = 0;
    for (std::int64_t k = 0; k < classes; ++k) mean += p[k] * dy[k];
    for (std::int64_t k = 0; k < classes; ++k) dx[k] = p[k] * (dy[k] - mean);
  }
}

void clear_padding(const LossShape& shape, std::int64_t real, float* gradient) {
  if (gradient == nullptr || shape.rows <= real) return;
  const auto padding = static_cast<std::size_t>((shape.rows - real) * shape.classes);
  std::memset(gradient + real * shape.classes, 0, padding * sizeof(float));
}

}  // namespace

void softmax_cross_entropy(const LossShape& shape, const float* logits, const std::int64_t* labels,
                           float label_smoothing, const StepScalars& scalars, float* dlogits, MetricSums& sums) {
  const std::int64_t classes = shape.classes;
  const float smooth = label_smoothing / static_cast<float>(classes);
  const auto bytes = static_cast<std::size_t>(classes) * sizeof(float);
  auto* unwanted = reinterpret_cast<float*>(Workspace::of_this_thread().reserve(bytes));
  double loss = 0;
  std::int64_t correct = 0;
  for (std::int64_t row = 0; row < scalars.rows; ++row, logits += classes) {
    const std::int64_t label = labels[row];
    const bool known = label >= 0 && label < classes;
    float* gradient = dlogits != nullptr ? dlogits + row * classes : unwanted;
    RowSums of;
    loss_row(logits, gradient, classes, smooth, scalars.inverse_global_rows, of);
    if (known) {
      gradient[label] -= (1.0F - label_smoothing) * scalars.inverse_global_rows;
    } else {
      std::memset(gradient, 0, bytes);
    }
    correct += of.maximum.index == label;
    const double target =
        known ? static_cast<double>(1.0F - label_smoothing) * static_cast<double>(logits[label] - of.maximum.value)
              : std::numeric_limits<double>::quiet_NaN();
    loss += std::log(static_cast<double>(of.exp_sum)) - target -
            static_cast<double>(smooth) * static_cast<double>(of.total);
  }
  clear_padding(shape, scalars.rows, dlogits);
  sums.loss += loss;
  sums.correct += correct;
  sums.examples += scalars.rows;
}

void soft_cross_entropy(const LossShape& shape, const float* logits, const float* targets, float label_smoothing,
                        const StepScalars& scalars, float* dlogits, MetricSums& sums) {
  const std::int64_t classes = shape.classes;
  const auto bytes = static_cast<std::size_t>(classes) * sizeof(float);
  auto* unwanted = reinterpret_cast<float*>(Workspace::of_this_thread().reserve(bytes));
  double loss = 0;
  for (std::int64_t row = 0; row < scalars.rows; ++row) {
    float* gradient = dlogits != nullptr ? dlogits + row * classes : unwanted;
    SoftRowSums of;
    soft_loss_row(logits + row * classes, targets + row * classes, gradient, classes, label_smoothing,
                  scalars.inverse_global_rows, of);
    loss += of.total * std::log(static_cast<double>(of.exp_sum)) - of.weighted;
  }
  clear_padding(shape, scalars.rows, dlogits);
  sums.loss += loss;
  sums.examples += scalars.rows;
}

void softmax_backward(const LossShape& shape, const float* p, const float* dy, float* dx) {
  const std::int64_t classes = shape.classes;
  parallel_ranges(shape.rows, row_grain(classes), [=](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * classes;
    softmax_gradient_rows(p + at, dy + at, dx + at, end - begin, classes);
  });
}

void softmax(const LossShape& shape, const float* logits, float* probabilities) {
  const std::int64_t classes = shape.classes;
  parallel_ranges(shape.rows, row_grain(classes), [=](std::int64_t begin, std::int64_t end) {
    softmax_rows(logits + begin * classes, probabilities + begin * classes, end - begin, classes);
  });
}

}  // namespace headrace::cpu
