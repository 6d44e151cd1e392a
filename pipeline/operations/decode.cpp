#include "headrace/pipeline/operations/decode.h"

#include <fmt/format.h>

#include "headrace/pipeline/operations/machinery/encoded_image.h"

namespace headrace {

bool is_mask(const Field& field) noexcept {
  return field.encoding == Encoding::kImage && field.shape.rank() == 3 && field.shape[2] == 1;
}

Field decoded_field(const Field& field, const DecodeStage& stage) {
  if (field.encoding != Encoding::kImage) return field;
  const DecodeOptions& size = stage.options;
  const bool any = size.height == 0;
  return {
      .name = field.name,
      .dtype = DType::kU8,
      .shape = {any ? Shape::kDynamic : size.height, any ? Shape::kDynamic : size.width, is_mask(field) ? 1 : 3},
      .layout = ImageLayout::kChannelsLast};
}

std::string describe(const DecodeStage& stage) {
  const DecodeOptions& options = stage.options;
  const std::string size = options.height > 0 ? fmt::format("{} x {}", options.height, options.width) : "";
  const std::string turned = options.apply_orientation ? "EXIF orientation applied" : "";
  return fmt::format("decode({}{}{})", size, size.empty() || turned.empty() ? "" : ", ", turned);
}

std::string describe(const SampleStage& stage) {
  const auto* planned = std::get_if<PlannedOperation>(&stage);
  return planned != nullptr ? describe(planned->operation) : describe(std::get<DecodeStage>(stage));
}

FieldView DecodeMaskStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  return decode_mask(in.bytes, stage_, *context.scratch, output);
}

FieldView DecodeStep::run(const FieldView& in, const StepContext& context, StepOutput& output) const {
  return decode_image(in.bytes, stage_, *context.scratch, output);
}

}  // namespace headrace
