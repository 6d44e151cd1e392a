// The functions of the CPU's table for optimizers, and for gradients and weights around an update.
#include <span>
#include <vector>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/cpu_submission.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/onednn_muon.h"
#include "headrace/devices/cpu/math/optimizers.h"
#include "headrace/devices/cpu/math/sums.h"

namespace headrace::cpu {
namespace {

ParameterArena arena_of(const Parameters& parameters, const TensorView& gradients, std::int64_t begin,
                        std::int64_t end) {
  return {.parameters = f32(parameters.values) + begin,
          .gradients = f32(gradients) + begin,
          .rounded = parameters.rounded.defined() ? parameters.rounded.as<BFloat16>() + begin : nullptr,
          .count = end - begin};
}

}  // namespace

void CpuKernels::adam(Stream& stream, const Parameters& parameters, const TensorView& gradients,
                      const TensorView& first_moment, const TensorView& second_moment,
                      std::span<const UpdateRange<AdamOptions>> ranges, const StepScalars* scalars) {
  check::adam(parameters, gradients, first_moment, second_moment, ranges);
  submit(stream, [=, owned = std::vector(ranges.begin(), ranges.end())] {
    for (const auto& [begin, end, options] : owned) {
      cpu::adam(arena_of(parameters, gradients, begin, end), f32(first_moment) + begin, f32(second_moment) + begin,
                options, *scalars);
    }
  });
}

void CpuKernels::sgd(Stream& stream, const Parameters& parameters, const TensorView& gradients,
                     const TensorView& velocity, std::span<const UpdateRange<SgdOptions>> ranges,
                     const StepScalars* scalars) {
  check::sgd(parameters, gradients, velocity, ranges);
  submit(stream, [=, owned = std::vector(ranges.begin(), ranges.end())] {
    for (const auto& [begin, end, options] : owned) {
      cpu::sgd(arena_of(parameters, gradients, begin, end),
               options.momentum == 0 ? nullptr : f32(velocity) + begin, options, *scalars);
    }
  });
}

void CpuKernels::muon(Stream& stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
                      const StepScalars* scalars) {
  check::muon(matrices, options);
  for (const MuonMatrix& matrix : matrices) submit(stream, muon_update(onednn_, matrix, options, scalars));
}

void CpuKernels::add_squares(Stream& stream, const TensorView& x, GradientNorm* norm) {
  check::tensor("add_squares", "x", x);
  submit(stream, [=] { norm->squares += cpu::sum_of_squares(f32(x), x.elements()); });
}

void CpuKernels::clip_factor(Stream& stream, float max_norm, GradientNorm* norm) {
  check::limit("clip_factor", max_norm);
  submit(stream, [=] { cpu::clip_factor(max_norm, *norm); });
}

void CpuKernels::clamp(Stream& stream, const TensorView& x, float limit) {
  check::tensor("clamp", "x", x);
  check::limit("clamp", limit);
  submit(stream, [=] { cpu::clamp(f32(x), limit, x.elements()); });
}

void CpuKernels::average(Stream& stream, const TensorView& weights, const StepScalars* scalars,
                         const TensorView& average) {
  for (const TensorView& view : {weights, average}) check::same("average", view, weights);
  submit(stream, [=] { cpu::average(f32(weights), scalars->average_decay, f32(average), weights.elements()); });
}

void CpuKernels::look_ahead(Stream& stream, const Parameters& parameters, const StepScalars* scalars,
                            const TensorView& slow) {
  check::look_ahead(parameters, slow);
  submit(stream, [=] {
    if (scalars->slow_share == 0) return;
    cpu::look_ahead(f32(parameters.values), parameters.rounded.as<BFloat16>(), scalars->slow_share, f32(slow),
                    slow.elements());
  });
}

}  // namespace headrace::cpu
