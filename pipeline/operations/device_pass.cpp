#include "headrace/pipeline/operations/device_pass.h"

#include <algorithm>

#include "headrace/pipeline/operations/image_shape.h"

namespace headrace {
namespace {

std::size_t bytes_of(const Field& field) {
  return static_cast<std::size_t>(field.shape.elements()) * size_of(field.dtype);
}

bool is_pixels(const Field& field) {
  return field.encoding == Encoding::kRaw && field.dtype == DType::kU8 && field.shape.rank() == 3 &&
         !field.shape.is_dynamic() && layout_of(field.shape) == ImageLayout::kChannelsLast;
}

// Takes operations in, one after another, as long as one pass can do them.
class PassBuilder {
 public:
  explicit PassBuilder(const Field& input) : channels_(input.shape[2]) {
    pass_.input = input;
    pass_.height = input.shape[0];
    pass_.width = input.shape[1];
  }

  bool add(const FieldOperation& operation) {
    const Field& before = operation.before;
    if (!flat_ && layout_of(before.shape) != pass_.layout) return false;  // an image of ambiguous shape
    pass_.stages.push_back(operation.stage);
    const Operation& what = operation.planned.operation;
    if (WindowChooser::takes(what)) return move_pixels(operation.planned);
    if (const auto* normalize = std::get_if<Normalize>(&what)) return scale(*normalize, before.dtype);
    if (const auto* tone = std::get_if<BrightnessContrast>(&what)) {
      if (pass_.tone) return false;
      pass_.tone = {.options = *tone, .number = operation.planned.number};
      return true;
    }
    if (const auto* cast = std::get_if<Cast>(&what)) return before.dtype == DType::kU8 || cast->to == DType::kF32;
    if (const auto* layout = std::get_if<ToLayout>(&what)) {
      pass_.layout = layout->to;
      return true;
    }
    flat_ = flat_ || std::holds_alternative<FlattenSample>(what);
    return std::holds_alternative<FlattenSample>(what);
  }

  DevicePass finish() {
    if (!scaled_) pass_.scale = every_channel(1, 0);
    return std::move(pass_);
  }

 private:
  ChannelScale every_channel(float scale, float shift) const {
    const auto count = static_cast<std::size_t>(channels_);
    return {std::vector(count, scale), std::vector(count, shift)};
  }

  // Zeros around numbers that were changed are other than zeros that are.
  bool move_pixels(const PlannedOperation& planned) {
    if (std::holds_alternative<PadCrop>(planned.operation) && (scaled_ || pass_.tone)) return false;
    if (!pass_.window.add(planned)) return false;
    if (const auto* crop = std::get_if<PadCrop>(&planned.operation)) pass_.height = pass_.width = crop->size;
    if (const auto* center = std::get_if<CenterCrop>(&planned.operation))
      pass_.height = pass_.width = center->size;
    return true;
  }

  // After flatten() several means are of elements, not of channels.
  bool scale(const Normalize& options, DType from) {
    if (scaled_ || pass_.tone || (flat_ && options.mean.size() > 1)) return false;
    pass_.scale = scale_of(options, from, channels_);
    scaled_ = true;
    return true;
  }

  DevicePass pass_;
  std::int64_t channels_;
  bool scaled_ = false, flat_ = false;
};

}  // namespace

std::optional<DevicePass> make_device_pass(std::span<const FieldOperation> operations, const Field& result) {
  if (operations.empty() || result.dtype != DType::kF32 || !is_pixels(operations.front().before))
    return std::nullopt;
  if (bytes_of(operations.front().before) >= bytes_of(result)) return std::nullopt;
  PassBuilder builder(operations.front().before);
  if (!std::ranges::all_of(operations, [&](const FieldOperation& each) { return builder.add(each); })) {
    return std::nullopt;
  }
  return builder.finish();
}

}  // namespace headrace
