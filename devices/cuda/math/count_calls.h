// Counts of predictions and weights of examples of GpuKernels. Private to the CUDA backend.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/loss_work.h"

namespace headrace::cuda {

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
  const float* weights;  // or null: none are added
  RowLoss* hits;         // one per row

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum& label,
                                  const RowLoss& before) const {
    if (lane != 0) return;
    const bool hit = row < scalars->rows && in.labels.known(label) && before.correct < k;
    hits[row] = {hit && weights != nullptr ? static_cast<double>(weights[row]) : 0.0, hit ? 1 : 0};
  }
};

struct ConfusionRows {
  struct Rows {
    LogitRows x;
    ClassLabels labels;

    HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t row, int lane) const { return labels.of(row, lane); }
    // The prediction: none, before all, where there is NaN.
    HEADRACE_HOST_DEVICE RowMaximum sums(std::int64_t row, int lane, const RowMaximum&) const {
      for (std::int64_t k = row * x.classes + lane; k < (row + 1) * x.classes; k += kRowLanes) {
        if (x.logits[k] != x.logits[k]) return {std::numeric_limits<float>::infinity(), -1};
      }
      return x.maximum(row, lane);
    }
  };
  Rows in;
  const StepScalars* scalars;
  std::int64_t* counts;

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum& label,
                                  const RowMaximum& predicted) const {
    if (lane != 0 || row >= scalars->rows || !in.labels.known(label) || predicted.index < 0) return;
    count_one(counts + label.index * in.x.classes + predicted.index);
  }
};

inline ClassLabels class_labels(const TensorView& x, const TensorView& labels) {
  const bool targets = labels.dtype == DType::kF32;
  return {targets ? nullptr : labels.as<std::int64_t>(), {targets ? labels.as<float>() : nullptr, x.shape[1]}};
}

template <typename Launcher>
void submit_count_top(Launcher& launch, const TensorView& x, const TensorView& labels, int k,
                      const ExampleRows& rows, MetricSums* sums, void* scratch) {
  auto* hits = static_cast<RowLoss*>(scratch);
  launch.rows(
      TopRows{{x.as<float>(), class_labels(x, labels)}, k, rows.scalars, rows.weights.as<const float>(), hits},
      x.shape[0]);
  launch.total(MetricTotal{hits, x.shape[0], rows.scalars, sums});
}

template <typename Launcher>
void submit_count_confusions(Launcher& launch, const TensorView& x, const TensorView& labels,
                             const StepScalars* scalars, const TensorView& counts) {
  launch.rows(
      ConfusionRows{{{x.as<float>(), x.shape[1]}, class_labels(x, labels)}, scalars, counts.as<std::int64_t>()},
      x.shape[0]);
}

// One thread counts one score.
struct ScoreCounts {
  const float* x;
  const float* targets;         // by element; or null:
  const std::int64_t* numbers;  // by element, or by row
  bool by_row;
  std::int64_t columns, buckets;
  float threshold;
  bool sigmoid;
  const StepScalars* scalars;
  std::int64_t* counts;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    static_assert(kWidth == 1, "counts are scattered");
    const std::int64_t row = at / columns, column = at % columns;
    if (row >= scalars->rows) return;
    const bool positive = targets != nullptr ? targets[at] >= 0.5F
                          : by_row           ? numbers[row] == column
                                             : numbers[at] > 0;
    count_one(counts + (column * buckets + bucket(x[at], positive)) * 2 + (positive ? 1 : 0));
  }

  // NaN is on the wrong side, whichever that is.
  HEADRACE_HOST_DEVICE std::int64_t bucket(float z, bool positive) const {
    if (z != z) return positive ? 0 : buckets - 1;
    const float score = sigmoid ? 1.0F / (1.0F + expf(-z)) : z;
    if (buckets == 2) return score > threshold ? 1 : 0;
    const float place = ceilf(score * static_cast<float>(buckets - 1)) - 1.0F;
    if (!(place > 0)) return 0;
    return place < static_cast<float>(buckets - 1) ? static_cast<std::int64_t>(place) : buckets - 1;
  }
};

template <typename Launcher>
void submit_count_scores(Launcher& launch, const TensorView& x, const TensorView& labels,
                         const ScoreBuckets& buckets, const StepScalars* scalars, const TensorView& counts) {
  const bool floats = labels.dtype == DType::kF32;
  const ScoreCounts work{x.as<float>(),
                         floats ? labels.as<float>() : nullptr,
                         floats ? nullptr : labels.as<std::int64_t>(),
                         labels.shape.rank() == 1 && x.shape[1] > 1,
                         x.shape[1],
                         buckets.count,
                         buckets.threshold,
                         buckets.sigmoid,
                         scalars,
                         counts.as<std::int64_t>()};
  submit_flat<1>(launch, work, x.elements(), true);
}

// The weights of the rows whose class is one of [first, first + kClasses): they travel as a kernel's argument. The
// part that begins with class 0 also writes NaN for rows of unknown classes.
struct WeightsByClass {
  static constexpr int kClasses = 256;

  float by_class[kClasses];
  std::int64_t first, classes;
  const std::int64_t* numbers;  // or null:
  const float* targets;
  std::int64_t width;  // of a row of targets
  const float* given;  // or null
  float* weights;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t row) const {
    static_assert(kWidth == 1, "rows have classes of their own");
    const std::int64_t label = class_of(row), place = label - first;
    const float factor = given == nullptr ? 1.0F : given[row];
    const bool known = label >= 0 && label < classes;
    if (!known && first == 0) weights[row] = std::numeric_limits<float>::quiet_NaN();
    if (known && place >= 0 && place < kClasses) weights[row] = by_class[place] * factor;
  }

  HEADRACE_HOST_DEVICE std::int64_t class_of(std::int64_t row) const {
    if (numbers != nullptr) return numbers[row];
    const float* of = targets + row * width;
    if (width == 1) return *of > -0.5F && *of < 0x1p31F ? static_cast<std::int64_t>(rintf(*of)) : -1;
    std::int64_t best = 0;
    for (std::int64_t k = 1; k < width; ++k) best = of[k] > of[best] ? k : best;
    return best;
  }
};

template <typename Launcher>
void submit_example_weights(Launcher& launch, const TensorView& labels, const std::vector<float>& by_class,
                            const TensorView& given, const TensorView& weights) {
  const bool floats = labels.dtype == DType::kF32;
  const auto classes = static_cast<std::int64_t>(by_class.size());
  for (std::int64_t first = 0; first < classes; first += WeightsByClass::kClasses) {
    WeightsByClass work{};
    const std::int64_t end = std::min<std::int64_t>(classes, first + WeightsByClass::kClasses);
    std::copy(by_class.begin() + first, by_class.begin() + end, work.by_class);
    work.first = first;
    work.classes = classes;
    work.numbers = floats ? nullptr : labels.as<std::int64_t>();
    work.targets = floats ? labels.as<float>() : nullptr;
    work.width = labels.elements() / labels.shape[0];
    work.given = given.as<float>();
    work.weights = weights.as<float>();
    submit_flat<1>(launch, work, weights.elements(), true);
  }
}

template <typename Launches>
void GpuKernels<Launches>::count_top(Stream& stream, const TensorView& x, const TensorView& labels, int k,
                                     const ExampleRows& rows, MetricSums* sums) {
  check::top("count_top", k);
  check::classes("count_top", x, labels);
  check::weights("count_top", rows, x);
  launches_.submit(stream, "count_top", loss_scratch_bytes(x), [=](auto& launch, void* scratch) {
    submit_count_top(launch, x, labels, k, rows, sums, scratch);
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

template <typename Launches>
void GpuKernels<Launches>::count_scores(Stream& stream, const TensorView& x, const TensorView& labels,
                                        const ScoreBuckets& buckets, const StepScalars* scalars,
                                        const TensorView& counts) {
  check::scores("count_scores", x, labels, buckets, counts);
  launches_.submit(stream, "count_scores",
                   [=](auto& launch) { submit_count_scores(launch, x, labels, buckets, scalars, counts); });
}

template <typename Launches>
void GpuKernels<Launches>::example_weights(Stream& stream, const TensorView& labels,
                                           std::span<const float> by_class, const TensorView& given,
                                           const TensorView& weights) {
  check::example_weights("example_weights", labels, by_class, given, weights);
  const std::vector<float> kept(by_class.begin(), by_class.end());
  launches_.submit(stream, "example_weights",
                   [=](auto& launch) { submit_example_weights(launch, labels, kept, given, weights); });
}

}  // namespace headrace::cuda
