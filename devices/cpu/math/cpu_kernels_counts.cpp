// The functions of the CPU's table for the counts of metrics and the weights of examples.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {
namespace {

// Labels are i64 class numbers, or f32 rows whose first maximum is the class.
struct ClassRows {
  RealRows real;
  std::int64_t classes = 0;
  const float* x = nullptr;
  TensorView labels = {};
};

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

// NaN is on the wrong side, whichever that is.
std::int64_t bucket_of(const ScoreBuckets& buckets, float x, bool positive) {
  if (std::isnan(x)) return positive ? 0 : buckets.count - 1;
  const float score = buckets.sigmoid ? 1.0F / (1.0F + std::exp(-x)) : x;
  if (buckets.count == 2) return score > buckets.threshold ? 1 : 0;
  const float place = std::ceil(score * static_cast<float>(buckets.count - 1)) - 1.0F;
  if (!(place > 0)) return 0;
  const std::int64_t last = buckets.count - 1;
  return place < static_cast<float>(last) ? static_cast<std::int64_t>(place) : last;
}

// Returns whether the row is positive for column k.
bool is_positive(const ClassRows& of, std::int64_t row, std::int64_t k) {
  if (of.labels.dtype == DType::kF32) return of.labels.as<float>()[row * of.classes + k] >= 0.5F;
  const auto* labels = of.labels.as<std::int64_t>();
  const bool number = of.labels.shape.rank() == 1 && of.classes > 1;
  return number ? labels[row] == k : labels[row * of.classes + k] > 0;
}

// Returns the row's class, as it is to be weighed; -1 if it is none.
std::int64_t weighed_class(const TensorView& labels, std::int64_t row) {
  const std::int64_t width = labels.elements() / labels.shape[0];
  if (labels.dtype == DType::kI64) return labels.as<std::int64_t>()[row];
  const float* of = labels.as<float>() + row * width;
  if (width > 1) return std::max_element(of, of + width) - of;
  return *of > -0.5F && *of < 0x1p31F ? static_cast<std::int64_t>(std::nearbyint(*of)) : -1;
}

void count_top(const ClassRows& of, int k, MetricSums& sums) {
  double weight = 0;
  for (std::int64_t row = 0; row < of.real.count; ++row) {
    const std::int64_t label = class_of(of, row);
    if (label < 0 || rank_of(of.x + row * of.classes, of.classes, label) >= k) continue;
    ++sums.correct;
    weight += static_cast<double>(of.real.weight(row));
  }
  if (of.real.weights != nullptr) sums.loss += weight;
  sums.examples += of.real.count;
}

void count_confusions(const ClassRows& of, std::int64_t* counts) {
  for (std::int64_t row = 0; row < of.real.count; ++row) {
    const std::int64_t label = class_of(of, row);
    const float* x = of.x + row * of.classes;
    const bool predicts = std::none_of(x, x + of.classes, [](float value) { return std::isnan(value); });
    if (label >= 0 && predicts) ++counts[label * of.classes + (std::max_element(x, x + of.classes) - x)];
  }
}

// Implements Kernels::count_scores().
void count_scores(const ClassRows& of, const ScoreBuckets& buckets, std::int64_t* counts) {
  for (std::int64_t row = 0; row < of.real.count; ++row) {
    for (std::int64_t k = 0; k < of.classes; ++k) {
      const bool positive = is_positive(of, row, k);
      const std::int64_t bucket = bucket_of(buckets, of.x[row * of.classes + k], positive);
      ++counts[(k * buckets.count + bucket) * 2 + (positive ? 1 : 0)];
    }
  }
}

// Implements Kernels::example_weights().
void example_weights(const TensorView& labels, std::span<const float> by_class, const float* given,
                     float* weights) {
  for (std::int64_t row = 0; row < labels.shape[0]; ++row) {
    const std::int64_t label = weighed_class(labels, row);
    const bool known = label >= 0 && label < static_cast<std::int64_t>(by_class.size());
    const float weight =
        known ? by_class[static_cast<std::size_t>(label)] : std::numeric_limits<float>::quiet_NaN();
    weights[row] = given == nullptr ? weight : weight * given[row];
  }
}

ClassRows class_rows(const TensorView& x, const TensorView& labels, const ExampleRows& rows) {
  return {.real = real_rows(rows), .classes = x.shape[1], .x = f32(x), .labels = labels};
}

}  // namespace

void CpuKernels::run(Stream& stream, const kernel::CountTop& of) {
  submit(stream, [=] { cpu::count_top(class_rows(of.x, of.labels, of.rows), of.k, *of.sums); });
}

void CpuKernels::run(Stream& stream, const kernel::CountConfusions& of) {
  submit(stream,
         [=] { cpu::count_confusions(class_rows(of.x, of.labels, of.scalars), of.counts.as<std::int64_t>()); });
}

void CpuKernels::run(Stream& stream, const kernel::CountScores& of) {
  submit(stream, [=] {
    cpu::count_scores(class_rows(of.x, of.labels, of.scalars), of.buckets, of.counts.as<std::int64_t>());
  });
}

void CpuKernels::run(Stream& stream, const kernel::ExampleWeights& of) {
  std::vector<float> kept(of.by_class.begin(), of.by_class.end());
  submit(stream,
         [=, kept = std::move(kept)] { cpu::example_weights(of.labels, kept, f32(of.given), f32(of.weights)); });
}

}  // namespace headrace::cpu
