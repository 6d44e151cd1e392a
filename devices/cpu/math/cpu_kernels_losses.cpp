// Losses, row by row, and softmax.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/cpu/math/vector_math.h"

namespace headrace::cpu {
namespace {

struct LossShape {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
};

// Elements of `rows` examples, each against its target.
template <typename Target>
struct ElementRows {
  std::int64_t rows = 0;
  std::int64_t elements = 0;  // of an example
  const float* x = nullptr;
  const Target* targets = nullptr;
  float label_smoothing = 0;  // target = (1 - label_smoothing) t + label_smoothing / 2
};

// `vectors` of `width` numbers for each of `rows` examples.
struct CosineRows {
  std::int64_t rows = 0, vectors = 0, width = 0;
  const float* x = nullptr;
  const float* targets = nullptr;
};

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
  constexpr float kLeast = 1e-7F;
  if constexpr (kLoss == ElementLoss::kSquaredError) return {(x - t) * (x - t), 2 * (x - t)};
  if constexpr (kLoss == ElementLoss::kAbsoluteError) {
    return {std::abs(x - t), x > t ? 1.0F : x < t ? -1.0F : 0.0F};
  }
  if constexpr (kLoss == ElementLoss::kBinaryFromLogits) {
    const float e = std::exp(-std::abs(x)), p = (x < 0 ? e : 1.0F) / (1.0F + e);
    return {std::max(x, 0.0F) - x * t + std::log1p(e), p - t};
  }
  if constexpr (kLoss == ElementLoss::kHuber) {
    const float error = x - t, distance = std::abs(error);
    if (distance > 1) return {distance - 0.5F, error > 0 ? 1.0F : -1.0F};
    return {0.5F * error * error, error};
  }
  if constexpr (kLoss == ElementLoss::kHinge) {
    const float sign = t > 0 ? 1.0F : t <= 0 ? -1.0F : t, short_of = 1 - sign * x;
    return short_of <= 0 ? ElementTerm{0, 0} : ElementTerm{short_of, short_of > 0 ? -sign : short_of};
  }
  if constexpr (kLoss == ElementLoss::kKullbackLeibler) {
    const float target = std::clamp(t, kLeast, 1.0F), p = x < kLeast ? kLeast : x > 1 ? 1.0F : x;
    return {target * std::log(target / p), x < kLeast || x > 1 ? 0.0F : -target / p};
  }
  if constexpr (kLoss >= ElementLoss::kMatchesOfLogits) {
    constexpr float kLimit = kLoss == ElementLoss::kMatchesOfLogits ? 0.0F : 0.5F;
    return {(x > kLimit && t >= 0.5F) || (x <= kLimit && t < 0.5F) ? 1.0F : 0.0F, 0.0F};
  }
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
  return sums_elements(kLoss) ? loss : loss / static_cast<double>(elements);
}

template <ElementLoss kLoss, typename Target>
void element_loss_rows(const ElementRows<Target>& of, const RealRows& real, float* dx, MetricSums& sums) {
  const std::int64_t elements = of.elements;
  const float factor = sums_elements(kLoss) ? real.factor : real.factor / static_cast<float>(elements);
  const auto bytes = static_cast<std::size_t>(real.count) * sizeof(double);
  auto* losses = reinterpret_cast<double*>(Workspace::of_this_thread().reserve(bytes));
  parallel_ranges(real.count, row_grain(4 * elements), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row * elements;
      const float weight = real.weight(row);
      losses[row] = static_cast<double>(weight) *
                    element_loss_row<kLoss>(of, at, factor * weight, dx == nullptr ? nullptr : dx + at);
    }
  });
  double loss = 0;
  for (std::int64_t row = 0; row < real.count; ++row) loss += losses[row];
  if (dx != nullptr) std::fill(dx + real.count * elements, dx + of.rows * elements, 0.0F);
  sums.loss += loss;
  sums.examples += real.count;
}

void softmax_cross_entropy(const LossShape& shape, const float* logits, const std::int64_t* labels,
                           float label_smoothing, const RealRows& real, float* dlogits, MetricSums& sums) {
  const std::int64_t classes = shape.classes;
  const float smooth = label_smoothing / static_cast<float>(classes);
  const auto bytes = static_cast<std::size_t>(classes) * sizeof(float);
  auto* unwanted = reinterpret_cast<float*>(Workspace::of_this_thread().reserve(bytes));
  double loss = 0;
  std::int64_t correct = 0;
  for (std::int64_t row = 0; row < real.count; ++row, logits += classes) {
    const float factor = real.factor * real.weight(row);
    const std::int64_t label = labels[row];
    const bool known = label >= 0 && label < classes;
    float* gradient = dlogits != nullptr ? dlogits + row * classes : unwanted;
    RowSums of;
    loss_row(logits, gradient, classes, smooth, factor, of);
    if (known) {
      gradient[label] -= (1.0F - label_smoothing) * factor;
    } else {
      std::memset(gradient, 0, bytes);
    }
    correct += of.maximum.index == label && of.exp_sum == of.exp_sum;  // no row with NaN
    const double target =
        known ? static_cast<double>(1.0F - label_smoothing) * static_cast<double>(logits[label] - of.maximum.value)
              : std::numeric_limits<double>::quiet_NaN();
    loss += static_cast<double>(real.weight(row)) * (std::log(static_cast<double>(of.exp_sum)) - target -
                                                     static_cast<double>(smooth) * static_cast<double>(of.total));
  }
  clear_padding(shape, real.count, dlogits);
  sums.loss += loss;
  sums.correct += correct;
  sums.examples += real.count;
}

void soft_cross_entropy(const LossShape& shape, const float* logits, const float* targets, float label_smoothing,
                        const RealRows& real, float* dlogits, MetricSums& sums) {
  const std::int64_t classes = shape.classes;
  const auto bytes = static_cast<std::size_t>(classes) * sizeof(float);
  auto* unwanted = reinterpret_cast<float*>(Workspace::of_this_thread().reserve(bytes));
  double loss = 0;
  for (std::int64_t row = 0; row < real.count; ++row) {
    float* gradient = dlogits != nullptr ? dlogits + row * classes : unwanted;
    SoftRowSums of;
    soft_loss_row(logits + row * classes, targets + row * classes, gradient, classes, label_smoothing,
                  real.factor * real.weight(row), of);
    loss += static_cast<double>(real.weight(row)) *
            (of.total * std::log(static_cast<double>(of.exp_sum)) - of.weighted);
  }
  clear_padding(shape, real.count, dlogits);
  sums.loss += loss;
  sums.examples += real.count;
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
void element_loss(ElementLoss loss, const ElementRows<Target>& of, const RealRows& real, float* dx,
                  MetricSums& sums) {
  switch (loss) {
    case ElementLoss::kSquaredError: return element_loss_rows<ElementLoss::kSquaredError>(of, real, dx, sums);
    case ElementLoss::kAbsoluteError: return element_loss_rows<ElementLoss::kAbsoluteError>(of, real, dx, sums);
    case ElementLoss::kBinaryFromLogits:
      return element_loss_rows<ElementLoss::kBinaryFromLogits>(of, real, dx, sums);
    case ElementLoss::kBinaryFromProbabilities:
      return element_loss_rows<ElementLoss::kBinaryFromProbabilities>(of, real, dx, sums);
    case ElementLoss::kHuber: return element_loss_rows<ElementLoss::kHuber>(of, real, dx, sums);
    case ElementLoss::kHinge: return element_loss_rows<ElementLoss::kHinge>(of, real, dx, sums);
    case ElementLoss::kKullbackLeibler:
      return element_loss_rows<ElementLoss::kKullbackLeibler>(of, real, dx, sums);
    case ElementLoss::kMatchesOfLogits:
      return element_loss_rows<ElementLoss::kMatchesOfLogits>(of, real, dx, sums);
    case ElementLoss::kMatchesOfProbabilities:
      return element_loss_rows<ElementLoss::kMatchesOfProbabilities>(of, real, dx, sums);
  }
}

void add_losses(const float* losses, const RealRows& real, MetricSums& sums) {
  double loss = 0;
  for (std::int64_t row = 0; row < real.count; ++row) {
    loss += static_cast<double>(real.weight(row)) * static_cast<double>(losses[row]);
  }
  sums.loss += loss;
  sums.examples += real.count;
}

// Returns the negative cosine of one vector, and writes its gradient times `factor` unless that is null.
double cosine_vector(const float* x, const float* target, std::int64_t width, float factor, float* gradient) {
  double squares = 0, target_squares = 0, products = 0;
  for (std::int64_t k = 0; k < width; ++k) {
    squares += static_cast<double>(x[k]) * static_cast<double>(x[k]);
    target_squares += static_cast<double>(target[k]) * static_cast<double>(target[k]);
    products += static_cast<double>(x[k]) * static_cast<double>(target[k]);
  }
  constexpr double kLimit = kernel::kMaxInverseNorm;
  const double inverse = std::min(1 / std::sqrt(squares), kLimit);
  const double by = inverse * std::min(1 / std::sqrt(target_squares), kLimit), cosine = products * by;
  if (gradient == nullptr) return -cosine;
  const double along = inverse < kLimit ? cosine * inverse * inverse : 0;  // a limited norm is a constant
  for (std::int64_t k = 0; k < width; ++k) {
    const double slope = along * static_cast<double>(x[k]) - by * static_cast<double>(target[k]);
    gradient[k] = static_cast<float>(slope * static_cast<double>(factor));
  }
  return -cosine;
}

void cosine_loss(const CosineRows& of, const RealRows& real, float* dx, MetricSums& sums) {
  const std::int64_t elements = of.vectors * of.width;
  const auto bytes = static_cast<std::size_t>(real.count) * sizeof(double);
  auto* losses = reinterpret_cast<double*>(Workspace::of_this_thread().reserve(bytes));
  parallel_ranges(real.count, row_grain(4 * elements), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float weight = real.weight(row), factor = real.factor * weight / static_cast<float>(of.vectors);
      double loss = 0;
      for (std::int64_t v = 0; v < of.vectors; ++v) {
        const std::int64_t at = row * elements + v * of.width;
        loss += cosine_vector(of.x + at, of.targets + at, of.width, factor, dx == nullptr ? nullptr : dx + at);
      }
      losses[row] = static_cast<double>(weight) * loss / static_cast<double>(of.vectors);
    }
  });
  double loss = 0;
  for (std::int64_t row = 0; row < real.count; ++row) loss += losses[row];
  if (dx != nullptr) std::fill(dx + real.count * elements, dx + of.rows * elements, 0.0F);
  sums.loss += loss;
  sums.examples += real.count;
}

}  // namespace

void CpuKernels::run(Stream& stream, const kernel::SoftmaxCrossEntropy& of) {
  submit(stream, [=] {
    cpu::softmax_cross_entropy({.rows = of.logits.shape[0], .classes = of.logits.shape[1]}, f32(of.logits),
                               of.labels.as<std::int64_t>(), of.label_smoothing, real_rows(of.rows),
                               f32(of.dlogits), *of.sums);
  });
}

void CpuKernels::run(Stream& stream, const kernel::Softmax& of) {
  submit(stream, [=] {
    const std::int64_t classes = of.logits.shape.back();
    cpu::softmax({.rows = of.logits.elements() / classes, .classes = classes}, f32(of.logits),
                 f32(of.probabilities));
  });
}

void CpuKernels::run(Stream& stream, const kernel::SoftmaxBackward& of) {
  submit(stream, [=] {
    const std::int64_t classes = of.p.shape.back();
    cpu::softmax_backward({.rows = of.p.elements() / classes, .classes = classes}, f32(of.p), f32(of.dy),
                          f32(of.dx));
  });
}

void CpuKernels::run(Stream& stream, const kernel::SoftCrossEntropy& of) {
  submit(stream, [=] {
    cpu::soft_cross_entropy({.rows = of.logits.shape[0], .classes = of.logits.shape[1]}, f32(of.logits),
                            f32(of.targets), of.label_smoothing, real_rows(of.rows), f32(of.dlogits), *of.sums);
  });
}

void CpuKernels::run(Stream& stream, const kernel::ElementLosses& of) {
  submit(stream, [=] {
    const auto run = [&]<typename Target>(Target*) {
      const ElementRows<Target> rows{.rows = of.x.shape[0],
                                     .elements = of.x.elements() / of.x.shape[0],
                                     .x = f32(of.x),
                                     .targets = of.targets.as<Target>(),
                                     .label_smoothing = of.label_smoothing};
      cpu::element_loss(of.loss, rows, real_rows(of.rows), f32(of.dx), *of.sums);
    };
    of.targets.dtype == DType::kF32 ? run(f32(of.targets)) : run(of.targets.as<std::int64_t>());
  });
}

void CpuKernels::run(Stream& stream, const kernel::CosineLoss& of) {
  submit(stream, [=] {
    const std::int64_t examples = of.x.shape[0], width = of.x.shape.back();
    cpu::cosine_loss({.rows = examples,
                      .vectors = of.x.elements() / (examples * width),
                      .width = width,
                      .x = f32(of.x),
                      .targets = f32(of.targets)},
                     real_rows(of.rows), f32(of.dx), *of.sums);
  });
}

void CpuKernels::run(Stream& stream, const kernel::AddLosses& of) {
  submit(stream, [=] { cpu::add_losses(f32(of.losses), real_rows(of.rows), *of.sums); });
}

}  // namespace headrace::cpu
