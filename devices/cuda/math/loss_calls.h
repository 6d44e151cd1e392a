// Losses of GpuKernels. Private to the CUDA backend.
#pragma once

#include <type_traits>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/loss_work.h"

namespace headrace::cuda {

// A loss and its slope.
struct ElementTerm {
  float loss, slope;
};

template <ElementLoss kLoss>
HEADRACE_HOST_DEVICE ElementTerm element_term(float x, float t) {
  constexpr float kLeast = 1e-7F;
  if constexpr (kLoss == ElementLoss::kSquaredError) return {(x - t) * (x - t), 2 * (x - t)};
  if constexpr (kLoss == ElementLoss::kAbsoluteError) {
    return {fabsf(x - t), x > t ? 1.0F : x < t ? -1.0F : 0.0F};
  }
  if constexpr (kLoss == ElementLoss::kBinaryFromLogits) {
    const float e = expf(-fabsf(x)), p = (x < 0 ? e : 1.0F) / (1.0F + e);
    return {(x > 0 ? x : 0.0F) - x * t + log1pf(e), p - t};
  }
  if constexpr (kLoss == ElementLoss::kHuber) {
    const float error = x - t, distance = fabsf(error);
    if (distance > 1) return {distance - 0.5F, error > 0 ? 1.0F : -1.0F};
    return {0.5F * error * error, error};
  }
  if constexpr (kLoss == ElementLoss::kHinge) {
    const float sign = t > 0 ? 1.0F : t <= 0 ? -1.0F : t, short_of = 1 - sign * x;
    return short_of <= 0 ? ElementTerm{0, 0} : ElementTerm{short_of, short_of > 0 ? -sign : short_of};
  }
  if constexpr (kLoss == ElementLoss::kKullbackLeibler) {
    const float target = t < kLeast ? kLeast : t > 1 ? 1.0F : t, p = x < kLeast ? kLeast : x > 1 ? 1.0F : x;
    return {target * logf(target / p), x < kLeast || x > 1 ? 0.0F : -target / p};
  }
  if constexpr (kLoss >= ElementLoss::kMatchesOfLogits) {
    constexpr float kLimit = kLoss == ElementLoss::kMatchesOfLogits ? 0.0F : 0.5F;
    return {(x > kLimit && t >= 0.5F) || (x <= kLimit && t < 0.5F) ? 1.0F : 0.0F, 0.0F};
  }
  const float p = x < kLeast ? kLeast : x > 1 - kLeast ? 1 - kLeast : x;  // NaN stays
  return {-t * logf(p) - (1 - t) * log1pf(-p), (p - t) / (p * (1 - p))};
}

template <ElementLoss kLoss, typename Target>
struct ElementRows {
  const float* x;
  const Target* targets;
  std::int64_t elements;  // of an example
  float label_smoothing;

  HEADRACE_HOST_DEVICE ElementTerm term(std::int64_t at) const {
    const float target = (1 - label_smoothing) * static_cast<float>(targets[at]) + label_smoothing / 2;
    return element_term<kLoss>(x[at], target);
  }
  HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t, int) const { return {}; }
  HEADRACE_HOST_DEVICE RowLoss sums(std::int64_t row, int lane, const RowMaximum&) const {
    RowLoss sums{};
    for (std::int64_t i = row * elements + lane; i < (row + 1) * elements; i += kRowLanes) {
      sums.loss += static_cast<double>(term(i).loss);
    }
    return sums;
  }
};

template <ElementLoss kLoss, typename Target>
struct ElementLossRows {
  ElementRows<kLoss, Target> in;
  const StepScalars* scalars;
  const float* weights;  // or null
  float* dx;             // or null
  RowLoss* losses;       // one per row

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum&, const RowLoss& sums) const {
    const bool real = row < scalars->rows;
    const std::int64_t divisor = sums_elements(kLoss) ? 1 : in.elements;
    const float weight = real ? weight_of(weights, row) : 0.0F;
    const float factor = scalars->inverse_global_rows / static_cast<float>(divisor) * weight;
    for (std::int64_t i = row * in.elements + lane; dx != nullptr && i < (row + 1) * in.elements; i += kRowLanes) {
      dx[i] = real ? in.term(i).slope * factor : 0.0F;
    }
    const double loss = static_cast<double>(weight) * (sums.loss / static_cast<double>(divisor));
    if (lane == 0) losses[row] = {real ? loss : 0.0, 0};
  }
};

// Calls function(integral_constant) with the loss.
template <typename Function>
void by_element_loss(ElementLoss loss, const Function& function) {
  const auto run = [&]<ElementLoss kLoss>() { function(std::integral_constant<ElementLoss, kLoss>{}); };
  switch (loss) {
    case ElementLoss::kSquaredError: return run.template operator()<ElementLoss::kSquaredError>();
    case ElementLoss::kAbsoluteError: return run.template operator()<ElementLoss::kAbsoluteError>();
    case ElementLoss::kBinaryFromLogits: return run.template operator()<ElementLoss::kBinaryFromLogits>();
    case ElementLoss::kBinaryFromProbabilities:
      return run.template operator()<ElementLoss::kBinaryFromProbabilities>();
    case ElementLoss::kHuber: return run.template operator()<ElementLoss::kHuber>();
    case ElementLoss::kHinge: return run.template operator()<ElementLoss::kHinge>();
    case ElementLoss::kKullbackLeibler: return run.template operator()<ElementLoss::kKullbackLeibler>();
    case ElementLoss::kMatchesOfLogits: return run.template operator()<ElementLoss::kMatchesOfLogits>();
    case ElementLoss::kMatchesOfProbabilities:
      return run.template operator()<ElementLoss::kMatchesOfProbabilities>();
  }
}

template <typename Launcher, typename Loss, typename Target>
void submit_element_loss(Launcher& launch, Loss, const TensorView& x, const Target* targets, float label_smoothing,
                         const ExampleRows& rows, const TensorView& dx, MetricSums* sums, void* scratch) {
  auto* losses = static_cast<RowLoss*>(scratch);
  const std::int64_t examples = x.shape[0];
  const ElementRows<Loss::value, Target> in{x.as<float>(), targets, x.elements() / examples, label_smoothing};
  launch.rows(ElementLossRows<Loss::value, Target>{in, rows.scalars, rows.weights.as<const float>(),
                                                   dx.as<float>(), losses},
              examples);
  launch.total(MetricTotal{losses, examples, rows.scalars, sums});
}

// A row is a vector; the sums are those of x^2, t^2, and x t.
struct CosineRows {
  static constexpr float kLimit = Kernels::kMaxInverseNorm;

  struct Rows {
    const float *x, *targets;
    std::int64_t width;

    HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t, int) const { return {}; }
    HEADRACE_HOST_DEVICE CosineSums sums(std::int64_t row, int lane, const RowMaximum&) const {
      CosineSums sums{};
      for (std::int64_t k = row * width + lane; k < (row + 1) * width; k += kRowLanes) {
        sums.squares += x[k] * x[k];
        sums.target_squares += targets[k] * targets[k];
        sums.products += x[k] * targets[k];
      }
      return sums;
    }
  };
  Rows in;
  const StepScalars* scalars;
  const float* weights;  // or null
  std::int64_t vectors;  // of an example
  float* dx;             // or null
  RowLoss* losses;       // one per row

  // Returns 1 / the norm, limited; a NaN stays one.
  HEADRACE_HOST_DEVICE static float inverse_norm(float squares) {
    const float inverse = 1.0F / sqrtf(squares);
    return inverse > kLimit ? kLimit : inverse;
  }
  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum&, const CosineSums& sums) const {
    const std::int64_t example = row / vectors;
    const bool real = example < scalars->rows;
    const float share = real ? weight_of(weights, example) / static_cast<float>(vectors) : 0.0F;
    const float inverse = inverse_norm(sums.squares), by = inverse * inverse_norm(sums.target_squares);
    const float cosine = sums.products * by;
    if (lane == 0) losses[row] = {real ? -static_cast<double>(share) * static_cast<double>(cosine) : 0.0, 0};
    if (dx == nullptr) return;
    // A limited norm is a constant.
    const float along = inverse == kLimit ? 0.0F : cosine * inverse * inverse;
    const float factor = share * scalars->inverse_global_rows;
    for (std::int64_t k = row * in.width + lane; k < (row + 1) * in.width; k += kRowLanes) {
      dx[k] = real ? (along * in.x[k] - by * in.targets[k]) * factor : 0.0F;
    }
  }
};

template <typename Launcher>
void submit_cosine_loss(Launcher& launch, const TensorView& x, const TensorView& targets, const ExampleRows& rows,
                        const TensorView& dx, MetricSums* sums, void* scratch) {
  auto* losses = static_cast<RowLoss*>(scratch);
  const std::int64_t width = x.shape.back(), all = x.elements() / width, vectors = all / x.shape[0];
  const CosineRows::Rows in{x.as<float>(), targets.as<float>(), width};
  launch.rows(CosineRows{in, rows.scalars, rows.weights.as<const float>(), vectors, dx.as<float>(), losses}, all);
  launch.total(MetricTotal{losses, all, rows.scalars, sums, vectors});
}

// Losses that were computed elsewhere.
struct GivenLosses {
  const float* losses;
  const float* weights;  // or null
  std::int64_t all_rows;
  const StepScalars* scalars;
  MetricSums* sums;

  HEADRACE_HOST_DEVICE RowLoss part(int thread, int threads) const {
    const std::int64_t rows = scalars->rows < all_rows ? scalars->rows : all_rows;
    RowLoss total{};
    for (std::int64_t row = thread; row < rows; row += threads) {
      total.loss += static_cast<double>(weight_of(weights, row)) * static_cast<double>(losses[row]);
    }
    return total;
  }
  HEADRACE_HOST_DEVICE void finish(const RowLoss& total) const {
    sums->loss += total.loss;
    sums->examples += scalars->rows;
  }
};

template <typename Launches>
void GpuKernels<Launches>::softmax_cross_entropy(Stream& stream, const TensorView& logits,
                                                 const TensorView& labels, float label_smoothing,
                                                 const ExampleRows& rows, const TensorView& dlogits,
                                                 MetricSums* sums) {
  check::loss("softmax_cross_entropy", logits, labels);
  if (dlogits.defined()) check::same("softmax_cross_entropy", dlogits, logits);
  check::weights("softmax_cross_entropy", rows, logits);
  launches_.submit(stream, "softmax_cross_entropy", loss_scratch_bytes(logits), [=](auto& launch, void* scratch) {
    submit_cross_entropy(launch, logits, labels, label_smoothing, rows, dlogits, sums, scratch);
  });
}

template <typename Launches>
void GpuKernels<Launches>::softmax(Stream& stream, const TensorView& logits, const TensorView& probabilities) {
  for (const TensorView& view : {logits, probabilities}) check::same("softmax", view, logits);
  launches_.submit(stream, "softmax", [=](auto& launch) { submit_softmax(launch, logits, probabilities); });
}

template <typename Launches>
void GpuKernels<Launches>::softmax_backward(Stream& stream, const TensorView& p, const TensorView& dy,
                                            const TensorView& dx) {
  for (const TensorView& view : {p, dy, dx}) check::same("softmax_backward", view, p);
  launches_.submit(stream, "softmax_backward", [=](auto& launch) { submit_softmax_backward(launch, p, dy, dx); });
}

template <typename Launches>
void GpuKernels<Launches>::soft_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& targets,
                                              float label_smoothing, const ExampleRows& rows,
                                              const TensorView& dlogits, MetricSums* sums) {
  check::soft_loss("soft_cross_entropy", logits, targets, dlogits);
  check::weights("soft_cross_entropy", rows, logits);
  launches_.submit(stream, "soft_cross_entropy", loss_scratch_bytes(logits), [=](auto& launch, void* scratch) {
    submit_soft_cross_entropy(launch, logits, targets, label_smoothing, rows, dlogits, sums, scratch);
  });
}

template <typename Launches>
void GpuKernels<Launches>::element_loss(Stream& stream, ElementLoss loss, const TensorView& x,
                                        const TensorView& targets, float label_smoothing, const ExampleRows& rows,
                                        const TensorView& dx, MetricSums* sums) {
  check::element_loss("element_loss", x, targets, dx);
  check::weights("element_loss", rows, x);
  launches_.submit(stream, "element_loss", loss_scratch_bytes(x), [=](auto& launch, void* scratch) {
    by_element_loss(loss, [&](auto which) {
      if (targets.dtype == DType::kF32) {
        submit_element_loss(launch, which, x, targets.as<float>(), label_smoothing, rows, dx, sums, scratch);
      } else {
        submit_element_loss(launch, which, x, targets.as<std::int64_t>(), label_smoothing, rows, dx, sums,
                            scratch);
      }
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::cosine_loss(Stream& stream, const TensorView& x, const TensorView& targets,
                                       const ExampleRows& rows, const TensorView& dx, MetricSums* sums) {
  check::cosine_loss("cosine_loss", x, targets, dx);
  check::weights("cosine_loss", rows, x);
  const auto bytes = static_cast<std::size_t>(x.elements() / x.shape.back()) * sizeof(RowLoss);
  launches_.submit(stream, "cosine_loss", bytes, [=](auto& launch, void* scratch) {
    submit_cosine_loss(launch, x, targets, rows, dx, sums, scratch);
  });
}

template <typename Launches>
void GpuKernels<Launches>::add_losses(Stream& stream, const TensorView& losses, const ExampleRows& rows,
                                      MetricSums* sums) {
  check::example_losses("add_losses", losses);
  check::weights("add_losses", rows, losses);
  launches_.submit(stream, "add_losses", [=](auto& launch) {
    launch.total(
        GivenLosses{losses.as<float>(), rows.weights.as<const float>(), losses.shape[0], rows.scalars, sums});
  });
}

}  // namespace headrace::cuda
