// The functions of the CPU's table for losses, softmax and the counts of metrics.
#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/cpu_submission.h"
#include "headrace/devices/cpu/math/loss.h"

namespace headrace::cpu {
namespace {

ClassRows class_rows(const TensorView& x, const TensorView& labels, const StepScalars& scalars) {
  return {.rows = scalars.rows, .classes = x.shape[1], .x = f32(x), .labels = labels};
}

}  // namespace

void CpuKernels::softmax_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& labels,
                                       float label_smoothing, const StepScalars* scalars,
                                       const TensorView& dlogits, MetricSums* sums) {
  check::loss("softmax_cross_entropy", logits, labels);
  if (dlogits.defined()) check::same("softmax_cross_entropy", dlogits, logits);
  submit(stream, [=] {
    cpu::softmax_cross_entropy({.rows = logits.shape[0], .classes = logits.shape[1]}, f32(logits),
                               labels.as<std::int64_t>(), label_smoothing, *scalars, f32(dlogits), *sums);
  });
}

void CpuKernels::softmax(Stream& stream, const TensorView& logits, const TensorView& probabilities) {
  for (const TensorView& view : {logits, probabilities}) check::same("softmax", view, logits);
  submit(stream, [=] {
    const std::int64_t classes = logits.shape.back();
    cpu::softmax({.rows = logits.elements() / classes, .classes = classes}, f32(logits), f32(probabilities));
  });
}

void CpuKernels::softmax_backward(Stream& stream, const TensorView& p, const TensorView& dy,
                                  const TensorView& dx) {
  for (const TensorView& view : {p, dy, dx}) check::same("softmax_backward", view, p);
  submit(stream, [=] {
    const std::int64_t classes = p.shape.back();
    cpu::softmax_backward({.rows = p.elements() / classes, .classes = classes}, f32(p), f32(dy), f32(dx));
  });
}

void CpuKernels::soft_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& targets,
                                    float label_smoothing, const StepScalars* scalars, const TensorView& dlogits,
                                    MetricSums* sums) {
  check::soft_loss("soft_cross_entropy", logits, targets, dlogits);
  submit(stream, [=] {
    cpu::soft_cross_entropy({.rows = logits.shape[0], .classes = logits.shape[1]}, f32(logits), f32(targets),
                            label_smoothing, *scalars, f32(dlogits), *sums);
  });
}

void CpuKernels::element_loss(Stream& stream, ElementLoss loss, const TensorView& x, const TensorView& targets,
                              float label_smoothing, const StepScalars* scalars, const TensorView& dx,
                              MetricSums* sums) {
  check::element_loss("element_loss", x, targets, dx);
  submit(stream, [=] {
    const auto run = [&]<typename Target>(Target*) {
      const ElementRows<Target> of{.rows = x.shape[0],
                                   .elements = x.elements() / x.shape[0],
                                   .x = f32(x),
                                   .targets = targets.as<Target>(),
                                   .label_smoothing = label_smoothing};
      cpu::element_loss(loss, of, *scalars, f32(dx), *sums);
    };
    targets.dtype == DType::kF32 ? run(f32(targets)) : run(targets.as<std::int64_t>());
  });
}

void CpuKernels::add_losses(Stream& stream, const TensorView& losses, const StepScalars* scalars,
                            MetricSums* sums) {
  check::example_losses("add_losses", losses);
  submit(stream, [=] { cpu::add_losses(f32(losses), *scalars, *sums); });
}

void CpuKernels::count_top(Stream& stream, const TensorView& x, const TensorView& labels, int k,
                           const StepScalars* scalars, MetricSums* sums) {
  check::top("count_top", k);
  check::classes("count_top", x, labels);
  submit(stream, [=] { cpu::count_top(class_rows(x, labels, *scalars), k, *sums); });
}

void CpuKernels::count_confusions(Stream& stream, const TensorView& x, const TensorView& labels,
                                  const StepScalars* scalars, const TensorView& counts) {
  check::classes("count_confusions", x, labels);
  check::confusions("count_confusions", x, counts);
  submit(stream, [=] { cpu::count_confusions(class_rows(x, labels, *scalars), counts.as<std::int64_t>()); });
}

}  // namespace headrace::cpu
