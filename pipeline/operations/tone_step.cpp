#include "headrace/pipeline/operations/tone_step.h"

#include "headrace/pipeline/operations/kernels/simd.h"

namespace headrace {
namespace {

HEADRACE_SIMD void change_tone(const PixelTone& tone, const float* __restrict from, std::int64_t count,
                               float* __restrict to) {
  const float shift = tone.shift, gain = tone.gain;
  for (std::int64_t i = 0; i < count; ++i) to[i] = (from[i] + shift) * gain;
}

}  // namespace

PixelTone draw_tone(const BrightnessContrast& options, Philox& random) {
  const float shift = (2 * random.uniform() - 1) * options.brightness;
  const float gain = 1 + (2 * random.uniform() - 1) * options.contrast;
  return {.shift = shift, .gain = gain};
}

FieldView ToneStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  Philox random = context.random(number);
  const std::span<std::byte> out = output.take(in.bytes.size());
  change_tone(draw_tone(options, random), reinterpret_cast<const float*>(in.bytes.data()),
              static_cast<std::int64_t>(in.bytes.size() / sizeof(float)), reinterpret_cast<float*>(out.data()));
  return {.bytes = out, .shape = in.shape};
}

}  // namespace headrace
