// Counts of predictions and weights of examples of GpuKernels. Private to the CUDA backend.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

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

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::CountTop& of) {
  launches_.submit(stream, name_of(of), loss_scratch_bytes(of.x), [=](auto& launch, void* scratch) {
    auto* hits = static_cast<RowLoss*>(scratch);
    const TopRows::Rows in{of.x.as<float>(), class_labels(of.x, of.labels)};
    launch.rows(TopRows{in, of.k, of.rows.scalars, of.rows.weights.as<const float>(), hits}, of.x.shape[0]);
    launch.total(MetricTotal{hits, of.x.shape[0], of.rows.scalars, of.sums});
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::CountConfusions& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const ConfusionRows::Rows in{{of.x.as<float>(), of.x.shape[1]}, class_labels(of.x, of.labels)};
    launch.rows(ConfusionRows{in, of.scalars, of.counts.as<std::int64_t>()}, of.x.shape[0]);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::CountScores& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const bool floats = of.labels.dtype == DType::kF32;
    const ScoreCounts work{of.x.as<float>(),
                           floats ? of.labels.as<float>() : nullptr,
                           floats ? nullptr : of.labels.as<std::int64_t>(),
                           of.labels.shape.rank() == 1 && of.x.shape[1] > 1,
                           of.x.shape[1],
                           of.buckets.count,
                           of.buckets.threshold,
                           of.buckets.sigmoid,
                           of.scalars,
                           of.counts.as<std::int64_t>()};
    submit_flat<1>(launch, work, of.x.elements());
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::ExampleWeights& of) {
  const std::vector<float> by_class(of.by_class.begin(), of.by_class.end());
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const bool floats = of.labels.dtype == DType::kF32;
    const auto classes = static_cast<std::int64_t>(by_class.size());
    for (std::int64_t first = 0; first < classes; first += WeightsByClass::kClasses) {
      WeightsByClass work{};
      const std::int64_t end = std::min<std::int64_t>(classes, first + WeightsByClass::kClasses);
      std::copy(by_class.begin() + first, by_class.begin() + end, work.by_class);
      work.first = first;
      work.classes = classes;
      work.numbers = floats ? nullptr : of.labels.as<std::int64_t>();
      work.targets = floats ? of.labels.as<float>() : nullptr;
      work.width = of.labels.elements() / of.labels.shape[0];
      work.given = of.given.as<float>();
      work.weights = of.weights.as<float>();
      submit_flat<1>(launch, work, of.weights.elements());
    }
  });
}

}  // namespace headrace::cuda
