#include "headrace/pipeline/operations/machinery/image_operation.h"

#include <cstring>

namespace headrace {

FieldView ImageStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  const std::int64_t height = in.shape[0], width = in.shape[1];
  const std::span<std::byte> out = output.take(static_cast<std::size_t>(height * width * channels_));
  Philox random = context.random(number_);
  if (random.uniform() < probability_) {
    changer_->change({.from = reinterpret_cast<const std::uint8_t*>(in.bytes.data()),
                      .height = height,
                      .width = width,
                      .channels = in.shape[2],
                      .to = reinterpret_cast<std::uint8_t*>(out.data())},
                     random, *context.scratch);
  } else {
    std::memcpy(out.data(), in.bytes.data(), out.size());
  }
  return {.bytes = out, .shape = {height, width, channels_}};
}

}  // namespace headrace
