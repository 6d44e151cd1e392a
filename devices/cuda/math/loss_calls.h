// Losses and counts of GpuKernels. Private to the CUDA backend.
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
  if constexpr (kLoss == ElementLoss::kSquaredError) return {(x - t) * (x - t), 2 * (x - t)};
  if constexpr (kLoss == ElementLoss::kAbsoluteError) {
    return {fabsf(x - t), x > t ? 1.0F : x < t ? -1.0F : 0.0F};
  }
  if constexpr (kLoss == ElementLoss::kBinaryFromLogits) {
    const float e = expf(-fabsf(x)), p = (x < 0 ? e : 1.0F) / (1.0F + e);
    return {(x > 0 ? x : 0.0F) - x * t + log1pf(e), p - t};
  }
  constexpr float kLeast = 1e-7F;
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
  float* dx;        // or null
  RowLoss* losses;  // one per row

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum&, const RowLoss& sums) const {
    const bool real = row < scalars->rows;
    const float factor = scalars->inverse_global_rows / static_cast<float>(in.elements);
    for (std::int64_t i = row * in.elements + lane; dx != nullptr && i < (row + 1) * in.elements; i += kRowLanes) {
      dx[i] = real ? in.term(i).slope * factor : 0.0F;
    }
    if (lane == 0) losses[row] = {real ? sums.loss / static_cast<double>(in.elements) : 0.0, 0};
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
  }
}

template <typename Launcher, typename Loss, typename Target>
void submit_element_loss(Launcher& launch, Loss, const TensorView& x, const Target* targets, float label_smoothing,
                         const StepScalars* scalars, const TensorView& dx, MetricSums* sums, void* scratch) {
  auto* losses = static_cast<RowLoss*>(scratch);
  const std::int64_t rows = x.shape[0];
  const ElementRows<Loss::value, Target> in{x.as<float>(), targets, x.elements() / rows, label_smoothing};
  launch.rows(ElementLossRows<Loss::value, Target>{in, scalars, dx.as<float>(), losses}, rows);
  launch.total(MetricTotal{losses, rows, scalars, sums});
}

// Losses that were computed elsewhere.
struct GivenLosses {
  const float* losses;
  std::int64_t all_rows;
  const StepScalars* scalars;
  MetricSums* sums;

  HEADRACE_HOST_DEVICE RowLoss part(int thread, int threads) const {
    const std::int64_t rows = scalars->rows < all_rows ? scalars->rows : all_rows;
    RowLoss total{};
    for (std::int64_t row = thread; row < rows; row += threads) total.loss += static_cast<double>(losses[row]);
    return total;
  }
  HEADRACE_HOST_DEVICE void finish(const RowLoss& total) const {
    sums->loss += total.loss;
    sums->examples += scalars->rows;
  }
};

// Adds one, from any thread: integer counts do not depend on the order.
HEADRACE_HOST_DEVICE void count_one(std::int64_t* count) {
#ifdef __CUDA_ARCH__
  atomicAdd(reinterpret_cast<unsigned long long*>(count), 1ULL);
#else
  ++*count;
#endif
}

// A row's class as `index`: its label's, or that of its largest target. Out of range if there is none.
struct ClassLabels {
  const std::int64_t* classes;  // or null:
  LogitRows targets;

  HEADRACE_HOST_DEVICE RowMaximum of(std::int64_t row, int lane) const {
    return classes != nullptr ? RowMaximum{0, classes[row]} : targets.maximum(row, lane);
  }
  HEADRACE_HOST_DEVICE bool known(const RowMaximum& label) const {
    return label.index >= 0 && label.index < targets.classes;
  }
};

struct TopRows {
  // Counts a row's elements that precede the label, as `total`; all if the label's is NaN.
  struct Rows {
    const float* x;
    ClassLabels labels;

    HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t row, int lane) const { return labels.of(row, lane); }
    HEADRACE_HOST_DEVICE RowLoss sums(std::int64_t row, int lane, const RowMaximum& label) const {
      RowLoss before{};
      if (!labels.known(label)) return before;
      const std::int64_t classes = labels.targets.classes;
      const float* z = x + row * classes;
      const float value = z[label.index];
      for (std::int64_t k = lane; k < classes; k += kRowLanes) {
        before.correct += !(z[k] < value || (z[k] == value && k >= label.index));
      }
      return before;
    }
  };
  Rows in;
  int k;
  const StepScalars* scalars;
  RowLoss* hits;  // one per row

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum& label,
                                  const RowLoss& before) const {
    if (lane == 0) hits[row] = {0, row < scalars->rows && in.labels.known(label) && before.correct < k ? 1 : 0};
  }
};

struct ConfusionRows {
  struct Rows {
    LogitRows x;
    ClassLabels labels;

    HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t row, int lane) const { return labels.of(row, lane); }
    // The prediction.
    HEADRACE_HOST_DEVICE RowMaximum sums(std::int64_t row, int lane, const RowMaximum&) const {
      return x.maximum(row, lane);
    }
  };
  Rows in;
  const StepScalars* scalars;
  std::int64_t* counts;

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum& label,
                                  const RowMaximum& predicted) const {
    if (lane != 0 || row >= scalars->rows || !in.labels.known(label)) return;
    count_one(counts + label.index * in.x.classes + predicted.index);
  }
};

inline ClassLabels class_labels(const TensorView& x, const TensorView& labels) {
  const bool targets = labels.dtype == DType::kF32;
  return {targets ? nullptr : labels.as<std::int64_t>(), {targets ? labels.as<float>() : nullptr, x.shape[1]}};
}

template <typename Launcher>
void submit_count_top(Launcher& launch, const TensorView& x, const TensorView& labels, int k,
                      const StepScalars* scalars, MetricSums* sums, void* scratch) {
  auto* hits = static_cast<RowLoss*>(scratch);
  launch.rows(TopRows{{x.as<float>(), class_labels(x, labels)}, k, scalars, hits}, x.shape[0]);
  launch.total(MetricTotal{hits, x.shape[0], scalars, sums});
}

template <typename Launcher>
void submit_count_confusions(Launcher& launch, const TensorView& x, const TensorView& labels,
                             const StepScalars* scalars, const TensorView& counts) {
  launch.rows(
      ConfusionRows{{{x.as<float>(), x.shape[1]}, class_labels(x, labels)}, scalars, counts.as<std::int64_t>()},
      x.shape[0]);
}

template <typename Launches>
void GpuKernels<Launches>::softmax_cross_entropy(Stream& stream, const TensorView& logits,
                                                 const TensorView& labels, float label_smoothing,
                                                 const StepScalars* scalars, const TensorView& dlogits,
                                                 MetricSums* sums) {
  check::loss("softmax_cross_entropy", logits, labels);
  if (dlogits.defined()) check::same("softmax_cross_entropy", dlogits, logits);
  launches_.submit(stream, "softmax_cross_entropy", loss_scratch_bytes(logits), [=](auto& launch, void* scratch) {
    submit_cross_entropy(launch, logits, labels, label_smoothing, scalars, dlogits, sums, scratch);
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
                                              float label_smoothing, const StepScalars* scalars,
                                              const TensorView& dlogits, MetricSums* sums) {
  check::soft_loss("soft_cross_entropy", logits, targets, dlogits);
  launches_.submit(stream, "soft_cross_entropy", loss_scratch_bytes(logits), [=](auto& launch, void* scratch) {
    submit_soft_cross_entropy(launch, logits, targets, label_smoothing, scalars, dlogits, sums, scratch);
  });
}

template <typename Launches>
void GpuKernels<Launches>::element_loss(Stream& stream, ElementLoss loss, const TensorView& x,
                                        const TensorView& targets, float label_smoothing,
                                        const StepScalars* scalars, const TensorView& dx, MetricSums* sums) {
  check::element_loss("element_loss", x, targets, dx);
  launches_.submit(stream, "element_loss", loss_scratch_bytes(x), [=](auto& launch, void* scratch) {
    by_element_loss(loss, [&](auto which) {
      if (targets.dtype == DType::kF32) {
        submit_element_loss(launch, which, x, targets.as<float>(), label_smoothing, scalars, dx, sums, scratch);
      } else {
        submit_element_loss(launch, which, x, targets.as<std::int64_t>(), label_smoothing, scalars, dx, sums,
                            scratch);
      }
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::add_losses(Stream& stream, const TensorView& losses, const StepScalars* scalars,
                                      MetricSums* sums) {
  check::example_losses("add_losses", losses);
  launches_.submit(stream, "add_losses", [=](auto& launch) {
    launch.total(GivenLosses{losses.as<float>(), losses.shape[0], scalars, sums});
  });
}

// The counts of GpuKernels.
template <typename Launches>
void GpuKernels<Launches>::count_top(Stream& stream, const TensorView& x, const TensorView& labels, int k,
                                     const StepScalars* scalars, MetricSums* sums) {
  check::top("count_top", k);
  check::classes("count_top", x, labels);
  launches_.submit(stream, "count_top", loss_scratch_bytes(x), [=](auto& launch, void* scratch) {
    submit_count_top(launch, x, labels, k, scalars, sums, scratch);
  });
}

template <typename Launches>
void GpuKernels<Launches>::count_confusions(Stream& stream, const TensorView& x, const TensorView& labels,
                                            const StepScalars* scalars, const TensorView& counts) {
  check::classes("count_confusions", x, labels);
  check::confusions("count_confusions", x, counts);
  launches_.submit(stream, "count_confusions",
                   [=](auto& launch) { submit_count_confusions(launch, x, labels, scalars, counts); });
}

}  // namespace headrace::cuda
