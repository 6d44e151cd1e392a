// Counts of right and wrong predictions, as work for warps, a row each. Private to the CUDA backend.
#pragma once

#include "headrace/devices/cuda/math/loss_work.h"

namespace headrace::cuda {

// One more, by whichever thread: counts of whole numbers do not depend on the order.
HEADRACE_HOST_DEVICE void count_one(std::int64_t* count) {
#ifdef __CUDA_ARCH__
  atomicAdd(reinterpret_cast<unsigned long long*>(count), 1ULL);
#else
  ++*count;
#endif
}

// A row's class as `index`: its label's, or that of its largest target. Out of range where there is none.
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
  // How many of a row come before the label, as `total`; all where that is NaN.
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
  RowLoss* hits;  // one a row

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

}  // namespace headrace::cuda
