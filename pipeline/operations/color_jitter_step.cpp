#include "headrace/pipeline/operations/color_jitter_step.h"

#include "headrace/pipeline/operations/kernels/color_kernels.h"

namespace headrace {

FieldView ColorJitterStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  Philox random = context.random(number);
  const ColorPlan plan = draw_colors(options, random);
  const std::span<std::byte> out = output.take(in.bytes.size());
  change_colors(plan, reinterpret_cast<const std::uint8_t*>(in.bytes.data()), in.shape[0] * in.shape[1],
                reinterpret_cast<std::uint8_t*>(out.data()));
  return {.bytes = out, .shape = in.shape};
}

}  // namespace headrace
