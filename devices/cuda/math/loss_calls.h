// Losses of GpuKernels. Private to the CUDA backend.
#pragma once

#include <type_traits>

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

// A row is a vector; the sums are those of x^2, t^2, and x t.
struct CosineRows {
  static constexpr float kLimit = kernel::kMaxInverseNorm;

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
void GpuKernels<Launches>::run(Stream& stream, const kernel::SoftmaxCrossEntropy& of) {
  launches_.submit(stream, name_of(of), loss_scratch_bytes(of.logits), [=](auto& launch, void* scratch) {
    auto* losses = static_cast<RowLoss*>(scratch);
    const std::int64_t rows = of.logits.shape[0];
    launch.rows(CrossEntropyRows{{of.logits.as<float>(), of.logits.shape[1]},
                                 of.labels.as<std::int64_t>(),
                                 of.label_smoothing,
                                 of.rows.scalars,
                                 of.rows.weights.as<const float>(),
                                 of.dlogits.as<float>(),
                                 losses},
                rows);
    launch.total(MetricTotal{losses, rows, of.rows.scalars, of.sums});
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Softmax& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const std::int64_t classes = of.logits.shape.back();
    launch.rows(SoftmaxRows{{of.logits.as<float>(), classes}, of.probabilities.as<float>()},
                of.logits.elements() / classes);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::SoftmaxBackward& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const std::int64_t classes = of.p.shape.back();
    launch.rows(SoftmaxGradientRows{{of.p.as<float>(), of.dy.as<float>(), classes}, of.dx.as<float>()},
                of.p.elements() / classes);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::SoftCrossEntropy& of) {
  launches_.submit(stream, name_of(of), loss_scratch_bytes(of.logits), [=](auto& launch, void* scratch) {
    auto* losses = static_cast<RowLoss*>(scratch);
    const std::int64_t rows = of.logits.shape[0], classes = of.logits.shape[1];
    const SoftLogitRows in{{of.logits.as<float>(), classes},
                           of.targets.as<float>(),
                           1.0F - of.label_smoothing,
                           of.label_smoothing / static_cast<float>(classes)};
    const auto* weights = of.rows.weights.as<const float>();
    launch.rows(SoftCrossEntropyRows{in, of.rows.scalars, weights, of.dlogits.as<float>(), losses}, rows);
    launch.total(MetricTotal{losses, rows, of.rows.scalars, of.sums});
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::ElementLosses& of) {
  launches_.submit(stream, name_of(of), loss_scratch_bytes(of.x), [=](auto& launch, void* scratch) {
    auto* losses = static_cast<RowLoss*>(scratch);
    const std::int64_t examples = of.x.shape[0];
    const auto run = [&](auto which, const auto* targets) {
      constexpr ElementLoss kLoss = decltype(which)::value;
      using Target = std::remove_cvref_t<decltype(*targets)>;
      const ElementRows<kLoss, Target> in{of.x.as<float>(), targets, of.x.elements() / examples,
                                          of.label_smoothing};
      const auto* weights = of.rows.weights.as<const float>();
      launch.rows(ElementLossRows<kLoss, Target>{in, of.rows.scalars, weights, of.dx.as<float>(), losses},
                  examples);
    };
    by_element_loss(of.loss, [&](auto which) {
      if (of.targets.dtype == DType::kF32) return run(which, of.targets.as<float>());
      run(which, of.targets.as<std::int64_t>());
    });
    launch.total(MetricTotal{losses, examples, of.rows.scalars, of.sums});
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::CosineLoss& of) {
  const std::int64_t width = of.x.shape.back(), all = of.x.elements() / width, vectors = all / of.x.shape[0];
  const std::size_t bytes = static_cast<std::size_t>(all) * sizeof(RowLoss);
  launches_.submit(stream, name_of(of), bytes, [=](auto& launch, void* scratch) {
    auto* losses = static_cast<RowLoss*>(scratch);
    const CosineRows::Rows in{of.x.as<float>(), of.targets.as<float>(), width};
    const auto* weights = of.rows.weights.as<const float>();
    launch.rows(CosineRows{in, of.rows.scalars, weights, vectors, of.dx.as<float>(), losses}, all);
    launch.total(MetricTotal{losses, all, of.rows.scalars, of.sums, vectors});
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::AddLosses& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    launch.total(GivenLosses{of.losses.as<float>(), of.rows.weights.as<const float>(), of.losses.shape[0],
                             of.rows.scalars, of.sums});
  });
}

}  // namespace headrace::cuda
