#include "headrace/pipeline/operations/machinery/device_pass.h"

#include "headrace/pipeline/operations/machinery/field_checks.h"

namespace headrace {
namespace {

std::size_t bytes_of(const Field& field) {
  return static_cast<std::size_t>(field.shape.elements()) * size_of(field.dtype);
}

bool is_pixels(const Field& field) {
  return field.encoding == Encoding::kRaw && field.dtype == DType::kU8 && field.shape.rank() == 3 &&
         !field.shape.is_dynamic() && layout_of(field) == ImageLayout::kChannelsLast;
}

ChannelScale unchanged(std::int64_t channels) {
  const auto count = static_cast<std::size_t>(channels);
  return {std::vector(count, 1.0F), std::vector(count, 0.0F)};
}

}  // namespace

std::optional<DevicePass> make_device_pass(std::span<const FieldOperation> operations, const Field& result) {
  if (operations.empty() || result.dtype != DType::kF32 || !is_pixels(operations.front().before))
    return std::nullopt;
  const Field& input = operations.front().before;
  if (bytes_of(input) >= bytes_of(result)) return std::nullopt;
  DevicePass device;
  device.input = input;
  device.height = input.shape[0];
  device.width = input.shape[1];
  PixelPass pass(input, kDevicePass);
  for (const FieldOperation& each : operations) {
    if (!pass.add(each.planned.operation.definition(), {.number = each.planned.number, .before = each.before})) {
      return std::nullopt;
    }
    device.stages.push_back(each.stage);
    const Shape after = apply_to_field(each.planned.operation, each.before).shape;
    if (pass.flat) continue;
    const bool planes = pass.to_layout == ImageLayout::kChannelsFirst;
    device.height = after[planes ? 1 : 0];
    device.width = after[planes ? 2 : 1];
  }
  device.window = std::move(pass.window);
  device.scale = pass.scale ? std::move(*pass.scale) : unchanged(input.shape[2]);
  device.tone = pass.tone;
  device.layout = pass.to_layout;
  return device;
}

}  // namespace headrace
