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

void CpuKernels::run(Stream& stream, const kernel::SoftmaxCrossEntropy& of) {
  submit(stream, [=] {
    cpu::softmax_cross_entropy({.rows = of.logits.shape[0], .classes = of.logits.shape[1]}, f32(of.logits),
                               of.labels.as<std::int64_t>(), of.label_smoothing, real_rows(of.rows),
                               f32(of.dlogits), *of.sums);
  });
}

void CpuKernels::run(Stream& stream, const kernel::Softmax& of) {
  submit(stream, [=] {
    const std::int64_t classes = of.logits.shape.back();
    cpu::softmax({.rows = of.logits.elements() / classes, .classes = classes}, f32(of.logits),
                 f32(of.probabilities));
  });
}

void CpuKernels::run(Stream& stream, const kernel::SoftmaxBackward& of) {
  submit(stream, [=] {
    const std::int64_t classes = of.p.shape.back();
    cpu::softmax_backward({.rows = of.p.elements() / classes, .classes = classes}, f32(of.p), f32(of.dy),
                          f32(of.dx));
  });
}

void CpuKernels::run(Stream& stream, const kernel::SoftCrossEntropy& of) {
  submit(stream, [=] {
    cpu::soft_cross_entropy({.rows = of.logits.shape[0], .classes = of.logits.shape[1]}, f32(of.logits),
                            f32(of.targets), of.label_smoothing, real_rows(of.rows), f32(of.dlogits), *of.sums);
  });
}

void CpuKernels::run(Stream& stream, const kernel::ElementLosses& of) {
  submit(stream, [=] {
    const auto run = [&]<typename Target>(Target*) {
      const ElementRows<Target> rows{.rows = of.x.shape[0],
                                     .elements = of.x.elements() / of.x.shape[0],
                                     .x = f32(of.x),
                                     .targets = of.targets.as<Target>(),
                                     .label_smoothing = of.label_smoothing};
      cpu::element_loss(of.loss, rows, real_rows(of.rows), f32(of.dx), *of.sums);
    };
    of.targets.dtype == DType::kF32 ? run(f32(of.targets)) : run(of.targets.as<std::int64_t>());
  });
}

void CpuKernels::run(Stream& stream, const kernel::CosineLoss& of) {
  submit(stream, [=] {
    const std::int64_t examples = of.x.shape[0], width = of.x.shape.back();
    cpu::cosine_loss({.rows = examples,
                      .vectors = of.x.elements() / (examples * width),
                      .width = width,
                      .x = f32(of.x),
                      .targets = f32(of.targets)},
                     real_rows(of.rows), f32(of.dx), *of.sums);
  });
}

void CpuKernels::run(Stream& stream, const kernel::AddLosses& of) {
  submit(stream, [=] { cpu::add_losses(f32(of.losses), real_rows(of.rows), *of.sums); });
}

}  // namespace headrace::cpu
