// The functions of the CPU's table for the counts of metrics and the weights of examples.
#include <utility>
#include <vector>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/math/counts.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/cpu_submission.h"

namespace headrace::cpu {
namespace {

ClassRows class_rows(const TensorView& x, const TensorView& labels, const ExampleRows& rows) {
  return {.real = {.count = rows.scalars->rows, .weights = rows.weights.as<const float>()},
          .classes = x.shape[1],
          .x = f32(x),
          .labels = labels};
}

}  // namespace

void CpuKernels::count_top(Stream& stream, const TensorView& x, const TensorView& labels, int k,
                           const ExampleRows& rows, MetricSums* sums) {
  check::top("count_top", k);
  check::classes("count_top", x, labels);
  check::weights("count_top", rows, x);
  submit(stream, [=] { cpu::count_top(class_rows(x, labels, rows), k, *sums); });
}

void CpuKernels::count_confusions(Stream& stream, const TensorView& x, const TensorView& labels,
                                  const StepScalars* scalars, const TensorView& counts) {
  check::classes("count_confusions", x, labels);
  check::confusions("count_confusions", x, counts);
  submit(stream, [=] { cpu::count_confusions(class_rows(x, labels, scalars), counts.as<std::int64_t>()); });
}

void CpuKernels::count_scores(Stream& stream, const TensorView& x, const TensorView& labels,
                              const ScoreBuckets& buckets, const StepScalars* scalars, const TensorView& counts) {
  check::scores("count_scores", x, labels, buckets, counts);
  submit(stream, [=] { cpu::count_scores(class_rows(x, labels, scalars), buckets, counts.as<std::int64_t>()); });
}

void CpuKernels::example_weights(Stream& stream, const TensorView& labels, std::span<const float> by_class,
                                 const TensorView& given, const TensorView& weights) {
  check::example_weights("example_weights", labels, by_class, given, weights);
  std::vector<float> kept(by_class.begin(), by_class.end());
  submit(stream, [=, kept = std::move(kept)] { cpu::example_weights(labels, kept, f32(given), f32(weights)); });
}

}  // namespace headrace::cpu
