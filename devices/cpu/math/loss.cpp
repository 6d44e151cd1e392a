#include "headrace/devices/cpu/math/loss.h"

#include <algorithm>
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
  std::int64_t index;  // of the first maximum
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

// The parts of a row's loss: log of the sum of e^(z - max), sum of (z - max).
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

// The parts of a row's loss against targets t: log of the sum of e^(z - max), sum of t, sum of t (z - max).
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

// A loss and its slope.
struct ElementTerm {
  float loss, slope;
};

template <ElementLoss kLoss>
ElementTerm element_term(float x, float t) {
  if constexpr (kLoss == ElementLoss::kSquaredError) return {(x - t) * (x - t), 2 * (x - t)};
  if constexpr (kLoss == ElementLoss::kAbsoluteError) {
    return {std::abs(x - t), x > t ? 1.0F : x < t ? -1.0F : 0.0F};
  }
  if constexpr (kLoss == ElementLoss::kBinaryFromLogits) {
    const float e = std::exp(-std::abs(x)), p = (x < 0 ? e : 1.0F) / (1.0F + e);
    return {std::max(x, 0.0F) - x * t + std::log1p(e), p - t};
  }
  constexpr float kLeast = 1e-7F;
  const float p = x < kLeast ? kLeast : x > 1 - kLeast ? 1 - kLeast : x;  // NaN stays
  return {-t * std::log(p) - (1 - t) * std::log1p(-p), (p - t) / (p * (1 - p))};
}

template <ElementLoss kLoss, typename Target>
double element_loss_row(const ElementRows<Target>& of, std::int64_t at, float factor, float* gradient) {
  const float* x = of.x + at;
  const Target* targets = of.targets + at;
  const std::int64_t elements = of.elements;
  const float keep = 1 - of.label_smoothing, half = of.label_smoothing / 2;
  double loss = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    const ElementTerm term = element_term<kLoss>(x[i], keep * static_cast<float>(targets[i]) + half);
    loss += static_cast<double>(term.loss);
    if (gradient != nullptr) gradient[i] = term.slope * factor;
  }
  return loss / static_cast<double>(elements);
}

template <ElementLoss kLoss, typename Target>
void element_loss_rows(const ElementRows<Target>& of, const StepScalars& scalars, float* dx, MetricSums& sums) {
  const std::int64_t elements = of.elements;
  const float factor = scalars.inverse_global_rows / static_cast<float>(elements);
  const auto bytes = static_cast<std::size_t>(scalars.rows) * sizeof(double);
  auto* losses = reinterpret_cast<double*>(Workspace::of_this_thread().reserve(bytes));
  parallel_ranges(scalars.rows, row_grain(4 * elements), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row * elements;
      losses[row] = element_loss_row<kLoss>(of, at, factor, dx == nullptr ? nullptr : dx + at);
    }
  });
  double loss = 0;
  for (std::int64_t row = 0; row < scalars.rows; ++row) loss += losses[row];
  if (dx != nullptr) std::fill(dx + scalars.rows * elements, dx + of.rows * elements, 0.0F);
  sums.loss += loss;
  sums.examples += scalars.rows;
}

// Returns -1 if it is no class.
std::int64_t class_of(const ClassRows& of, std::int64_t row) {
  if (of.labels.dtype == DType::kF32) {
    const float* target = of.labels.as<float>() + row * of.classes;
    return std::max_element(target, target + of.classes) - target;
  }
  const std::int64_t label = of.labels.as<std::int64_t>()[row];
  return label < of.classes ? std::max<std::int64_t>(label, -1) : -1;
}

// Returns how many elements of the row precede the label, ordered from the largest, earlier ones first on ties;
// all if the label's is NaN.
std::int64_t rank_of(const float* x, std::int64_t classes, std::int64_t label) {
  const float value = x[label];
  std::int64_t before = 0;
  for (std::int64_t k = 0; k < classes; ++k) before += !(x[k] < value || (x[k] == value && k >= label));
  return before;
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

template <typename Target>
void element_loss(ElementLoss loss, const ElementRows<Target>& of, const StepScalars& scalars, float* dx,
                  MetricSums& sums) {
  switch (loss) {
    case ElementLoss::kSquaredError: return element_loss_rows<ElementLoss::kSquaredError>(of, scalars, dx, sums);
    case ElementLoss::kAbsoluteError: return element_loss_rows<ElementLoss::kAbsoluteError>(of, scalars, dx, sums);
    case ElementLoss::kBinaryFromLogits:
      return element_loss_rows<ElementLoss::kBinaryFromLogits>(of, scalars, dx, sums);
    case ElementLoss::kBinaryFromProbabilities:
      return element_loss_rows<ElementLoss::kBinaryFromProbabilities>(of, scalars, dx, sums);
  }
}

template void element_loss(ElementLoss, const ElementRows<float>&, const StepScalars&, float*, MetricSums&);
template void element_loss(ElementLoss, const ElementRows<std::int64_t>&, const StepScalars&, float*, MetricSums&);

void add_losses(const float* losses, const StepScalars& scalars, MetricSums& sums) {
  double loss = 0;
  for (std::int64_t row = 0; row < scalars.rows; ++row) loss += static_cast<double>(losses[row]);
  sums.loss += loss;
  sums.examples += scalars.rows;
}

void count_top(const ClassRows& of, int k, MetricSums& sums) {
  for (std::int64_t row = 0; row < of.rows; ++row) {
    const std::int64_t label = class_of(of, row);
    if (label >= 0) sums.correct += rank_of(of.x + row * of.classes, of.classes, label) < k;
  }
  sums.examples += of.rows;
}

void count_confusions(const ClassRows& of, std::int64_t* counts) {
  for (std::int64_t row = 0; row < of.rows; ++row) {
    const std::int64_t label = class_of(of, row);
    const float* x = of.x + row * of.classes;
    if (label >= 0) ++counts[label * of.classes + (std::max_element(x, x + of.classes) - x)];
  }
}

}  // namespace headrace::cpu
