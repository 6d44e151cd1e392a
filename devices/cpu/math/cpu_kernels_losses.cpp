// The functions of the CPU's table for losses and softmax.
#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/loss.h"

namespace headrace::cpu {
namespace {

RealRows real_rows(const ExampleRows& rows) {
  return {.count = rows.scalars->rows,
          .factor = rows.scalars->inverse_global_rows,
          .weights = rows.weights.as<const float>()};
}

}  // namespace

void CpuKernels::softmax_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& labels,
                                       float label_smoothing, const ExampleRows& rows, const TensorView& dlogits,
                                       MetricSums* sums) {
  check::loss("softmax_cross_entropy", logits, labels);
  check::weights("softmax_cross_entropy", rows, logits);
  if (dlogits.defined()) check::same("softmax_cross_entropy", dlogits, logits);
  submit(stream, [=] {
    cpu::softmax_cross_entropy({.rows = logits.shape[0], .classes = logits.shape[1]}, f32(logits),
                               labels.as<std::int64_t>(), label_smoothing, real_rows(rows), f32(dlogits), *sums);
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
                                    float label_smoothing, const ExampleRows& rows, const TensorView& dlogits,
                                    MetricSums* sums) {
  check::soft_loss("soft_cross_entropy", logits, targets, dlogits);
  check::weights("soft_cross_entropy", rows, logits);
  submit(stream, [=] {
    cpu::soft_cross_entropy({.rows = logits.shape[0], .classes = logits.shape[1]}, f32(logits), f32(targets),
                            label_smoothing, real_rows(rows), f32(dlogits), *sums);
  });
}

void CpuKernels::element_loss(Stream& stream, ElementLoss loss, const TensorView& x, const TensorView& targets,
                              float label_smoothing, const ExampleRows& rows, const TensorView& dx,
                              MetricSums* sums) {
  check::element_loss("element_loss", x, targets, dx);
  check::weights("element_loss", rows, x);
  submit(stream, [=] {
    const auto run = [&]<typename Target>(Target*) {
      const ElementRows<Target> of{.rows = x.shape[0],
                                   .elements = x.elements() / x.shape[0],
                                   .x = f32(x),
                                   .targets = targets.as<Target>(),
                                   .label_smoothing = label_smoothing};
      cpu::element_loss(loss, of, real_rows(rows), f32(dx), *sums);
    };
    targets.dtype == DType::kF32 ? run(f32(targets)) : run(targets.as<std::int64_t>());
  });
}

void CpuKernels::cosine_loss(Stream& stream, const TensorView& x, const TensorView& targets,
                             const ExampleRows& rows, const TensorView& dx, MetricSums* sums) {
  check::cosine_loss("cosine_loss", x, targets, dx);
  check::weights("cosine_loss", rows, x);
  submit(stream, [=] {
    const std::int64_t examples = x.shape[0], width = x.shape.back();
    cpu::cosine_loss({.rows = examples,
                      .vectors = x.elements() / (examples * width),
                      .width = width,
                      .x = f32(x),
                      .targets = f32(targets)},
                     real_rows(rows), f32(dx), *sums);
  });
}

void CpuKernels::add_losses(Stream& stream, const TensorView& losses, const ExampleRows& rows, MetricSums* sums) {
  check::example_losses("add_losses", losses);
  check::weights("add_losses", rows, losses);
  submit(stream, [=] { cpu::add_losses(f32(losses), real_rows(rows), *sums); });
}

}  // namespace headrace::cpu
