#include "headrace/pipeline/operation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/image_shape.h"

namespace headrace {
namespace {

// Sides of results and widths of padding: their squares stay below the pixels an image may have.
constexpr int kLargestSide = 1 << 14;
constexpr int kMostClasses = 1 << 20;
constexpr float kSmallestAlpha = 1e-3F, kLargestAlpha = 1e3F;

[[noreturn]] void refuse_field(const std::string& operation, const Field& field, const std::string& why,
                               const std::string& hint = {}) {
  throw ConfigError(fmt::format("{} cannot be applied to field '{}' of {} {}: {}", operation, field.name,
                                to_string(field.dtype), field.shape.to_string(), why),
                    hint);
}

void want_decoded(const std::string& operation, const Field& field) {
  if (field.encoding == Encoding::kImage) {
    refuse_field(operation, field, "it is still encoded", "call .decode() before .map()");
  }
}

void want_channels_last(const std::string& operation, const Field& field) {
  want_decoded(operation, field);
  if (field.shape.rank() != 3) refuse_field(operation, field, "an image of shape (H, W, C) is needed");
  if (layout_of(field.shape) != ImageLayout::kChannelsLast) {
    refuse_field(operation, field, "the channels come first", "put to_layout(kChannelsFirst) last in the chain");
  }
}

void want_type(const std::string& operation, const Field& field, std::initializer_list<DType> types) {
  if (std::find(types.begin(), types.end(), field.dtype) != types.end()) return;
  refuse_field(operation, field, types.size() == 1 ? "uint8 is needed" : "uint8 or float32 is needed");
}

void want_side(const std::string& operation, const Field& field, int size) {
  if (size < 1) refuse_field(operation, field, fmt::format("size {} is not positive", size));
  if (size > kLargestSide) refuse_field(operation, field, fmt::format("size {} is above {}", size, kLargestSide));
}

void want_finite(const std::string& operation, const Field& field, const std::vector<float>& values) {
  for (const float value : values) {
    if (!std::isfinite(value)) refuse_field(operation, field, fmt::format("{} is no finite number", value));
  }
}

void want_probability(const std::string& operation, const Field& field, float probability) {
  if (!(probability >= 0 && probability <= 1))
    refuse_field(operation, field, "the probability is not within 0 and 1");
}

// What mixup and cutmix need of the image and of alpha.
void want_mixable(const std::string& operation, const Field& field, float alpha, float probability) {
  want_decoded(operation, field);
  want_type(operation, field, {DType::kU8, DType::kF32});
  if (!(alpha >= kSmallestAlpha && alpha <= kLargestAlpha)) {
    refuse_field(operation, field,
                 fmt::format("alpha {} is not within {} and {}", alpha, kSmallestAlpha, kLargestAlpha));
  }
  want_probability(operation, field, probability);
}

// What apply_to_field does for each operation; `field` is the input and becomes the result.
struct Apply {
  Field field;
  const std::string& name;

  void square(int size) { field.shape = Shape{size, size, field.shape[2]}; }

  void operator()(const PadCrop& options) {
    want_channels_last(name, field);
    want_type(name, field, {DType::kU8, DType::kF32});
    want_side(name, field, options.size);
    if (options.pad < 0) refuse_field(name, field, "the padding is negative");
    if (options.pad > kLargestSide)
      refuse_field(name, field, fmt::format("the padding is above {}", kLargestSide));
    for (int axis = 0; axis < 2; ++axis) {
      const std::int64_t extent = field.shape[axis];
      if (extent == Shape::kDynamic) continue;
      if (extent + 2 * options.pad < options.size)
        refuse_field(name, field, "the padded image is smaller than the crop");
      if (options.padding == Padding::kReflect && options.pad >= extent) {
        refuse_field(name, field, "reflection needs a padding smaller than the image");
      }
    }
    square(options.size);
  }
  void operator()(const Flip& options) {
    want_channels_last(name, field);
    want_type(name, field, {DType::kU8, DType::kF32});
    want_probability(name, field, options.probability);
  }
  void operator()(const Normalize& options) {
    want_decoded(name, field);
    want_type(name, field, {DType::kU8, DType::kF32});
    const std::size_t count = options.mean.size();
    if (count == 0 || count != options.std.size()) {
      refuse_field(name, field, fmt::format("{} means and {} standard deviations", count, options.std.size()));
    }
    want_finite(name, field, options.mean);
    want_finite(name, field, options.std);
    if (std::find(options.std.begin(), options.std.end(), 0.0F) != options.std.end()) {
      refuse_field(name, field, "a standard deviation is 0");
    }
    if (count > 1 && static_cast<std::int64_t>(count) != channels_of(field.shape)) {
      refuse_field(name, field, fmt::format("{} means for {} channels", count, channels_of(field.shape)));
    }
    field.dtype = DType::kF32;
  }
  void operator()(const Cast& options) {
    want_decoded(name, field);
    want_type(name, field, {DType::kU8, DType::kF32});
    if (options.to != DType::kU8 && options.to != DType::kF32) {
      refuse_field(name, field, fmt::format("{} is not offered, only uint8 and float32", to_string(options.to)));
    }
    field.dtype = options.to;
  }
  void operator()(const ToLayout& options) {
    want_decoded(name, field);
    want_type(name, field, {DType::kU8, DType::kF32});
    if (field.shape.rank() != 3) refuse_field(name, field, "an image of three axes is needed");
    const Shape& from = field.shape;
    if (layout_of(from) == options.to) return;
    field.shape = options.to == ImageLayout::kChannelsFirst ? Shape{from[2], from[0], from[1]}
                                                            : Shape{from[1], from[2], from[0]};
  }
  void operator()(const FlattenSample&) {
    want_decoded(name, field);
    if (field.shape.is_dynamic()) {
      refuse_field(name, field, "its size differs from record to record", "crop or resize it first");
    }
    field.shape = Shape{field.shape.elements()};
  }
  void operator()(const RandomResizedCrop& options) {
    want_channels_last(name, field);
    want_type(name, field, {DType::kU8});
    want_side(name, field, options.size);
    if (!(options.min_area > 0 && options.min_area <= options.max_area && options.max_area <= 1)) {
      refuse_field(name, field, "areas must satisfy 0 < min_area <= max_area <= 1");
    }
    if (!(options.min_ratio > 0 && options.min_ratio <= options.max_ratio && std::isfinite(options.max_ratio))) {
      refuse_field(name, field, "ratios must satisfy 0 < min_ratio <= max_ratio < infinity");
    }
    square(options.size);
  }
  void operator()(const Resize& options) {
    want_channels_last(name, field);
    want_type(name, field, {DType::kU8});
    want_side(name, field, options.size);
    if (field.shape.is_dynamic()) {
      field.shape = Shape{Shape::kDynamic, Shape::kDynamic, field.shape[2]};
    } else {
      const auto [height, width] = shorter_side_to(options.size, field.shape[0], field.shape[1]);
      field.shape = Shape{height, width, field.shape[2]};
    }
  }
  void operator()(const CenterCrop& options) {
    want_channels_last(name, field);
    want_type(name, field, {DType::kU8, DType::kF32});
    want_side(name, field, options.size);
    for (int axis = 0; axis < 2; ++axis) {
      const std::int64_t extent = field.shape[axis];
      if (extent != Shape::kDynamic && extent < options.size) {
        refuse_field(name, field, "the image is smaller than the crop", "resize() it first");
      }
    }
    square(options.size);
  }
  void operator()(const ColorJitter& options) {
    want_channels_last(name, field);
    want_type(name, field, {DType::kU8});
    if (field.shape[2] != 3) refuse_field(name, field, "an image of three channels, RGB, is needed");
    want_finite(name, field, {options.brightness, options.contrast, options.saturation});
    if (options.brightness < 0 || options.contrast < 0 || options.saturation < 0) {
      refuse_field(name, field, "an amount is negative");
    }
    if (!(options.hue >= 0 && options.hue <= 0.5F)) refuse_field(name, field, "the hue is not within 0 and 0.5");
  }
  void operator()(const BrightnessContrast& options) {
    want_decoded(name, field);
    if (field.dtype != DType::kF32)
      refuse_field(name, field, "float32 is needed", "normalize() or cast() it first");
    want_finite(name, field, {options.brightness, options.contrast});
    if (options.brightness < 0 || options.contrast < 0) refuse_field(name, field, "an amount is negative");
  }
  void operator()(const Cutout& options) {
    want_decoded(name, field);
    if (field.shape.rank() != 3)
      refuse_field(name, field, "an image of three axes is needed", "cut out before flatten()");
    want_type(name, field, {DType::kU8, DType::kF32});
    want_side(name, field, options.size);
    want_finite(name, field, options.fill);
    const auto count = static_cast<std::int64_t>(options.fill.size());
    if (count != 1 && count != channels_of(field.shape)) {
      refuse_field(name, field, fmt::format("{} values for {} channels", count, channels_of(field.shape)));
    }
    for (const float value : options.fill) {
      if (field.dtype == DType::kU8 && (value < 0 || value > 255))
        refuse_field(name, field, "the value is not within 0 and 255");
    }
  }
  void operator()(const OneHot& options) {
    if (field.dtype != DType::kI64 || field.shape.rank() != 0 || field.encoding != Encoding::kRaw) {
      refuse_field(name, field, "a class number, one int64, is needed");
    }
    if (options.classes < 1 || options.classes > kMostClasses) {
      refuse_field(name, field, fmt::format("{} classes; 1 to {} are possible", options.classes, kMostClasses));
    }
    if (!(options.smoothing >= 0 && options.smoothing <= 1))
      refuse_field(name, field, "the smoothing is not within 0 and 1");
    field.dtype = DType::kF32;
    field.shape = Shape{options.classes};
  }
  void operator()(const Mixup& options) { want_mixable(name, field, options.alpha, options.probability); }
  void operator()(const Cutmix& options) {
    want_mixable(name, field, options.alpha, options.probability);
    if (field.shape.rank() != 3)
      refuse_field(name, field, "an image of three axes is needed", "do not flatten() it");
  }
  void operator()(const UserMap& map) {
    if (!map.function) refuse_field(name, field, "it has no function");
    if (map.output.shape.is_dynamic() || map.output.encoding != Encoding::kRaw) {
      refuse_field(name, field, "its output must have a fixed shape and raw elements");
    }
    field = Field{.name = field.name, .dtype = map.output.dtype, .shape = map.output.shape};
  }
};

struct DescribeOperation {
  std::string operator()(const PadCrop& o) const {
    return fmt::format("pad_crop({}, pad={}, {})", o.size, o.pad,
                       o.padding == Padding::kZero ? "zero" : "reflect");
  }
  std::string operator()(const Flip& o) const {
    return fmt::format("flip({}{})", o.probability, o.draw == FlipDraw::kAlternating ? ", alternating" : "");
  }
  std::string operator()(const Normalize& o) const {
    return fmt::format("normalize(mean=[{}], std=[{}])", fmt::join(o.mean, ", "), fmt::join(o.std, ", "));
  }
  std::string operator()(const Cast& o) const { return fmt::format("cast({})", to_string(o.to)); }
  std::string operator()(const ToLayout& o) const {
    return fmt::format("to_layout({})", o.to == ImageLayout::kChannelsFirst ? "CHW" : "HWC");
  }
  std::string operator()(const FlattenSample&) const { return "flatten()"; }
  std::string operator()(const RandomResizedCrop& o) const {
    return fmt::format("random_resized_crop({}, area={}-{}, ratio={}-{})", o.size, o.min_area, o.max_area,
                       o.min_ratio, o.max_ratio);
  }
  std::string operator()(const Resize& o) const { return fmt::format("resize({})", o.size); }
  std::string operator()(const CenterCrop& o) const { return fmt::format("center_crop({})", o.size); }
  std::string operator()(const ColorJitter& o) const {
    return fmt::format("color_jitter(brightness={}, contrast={}, saturation={}, hue={})", o.brightness, o.contrast,
                       o.saturation, o.hue);
  }
  std::string operator()(const BrightnessContrast& o) const {
    return fmt::format("brightness_contrast({}, {})", o.brightness, o.contrast);
  }
  std::string operator()(const Cutout& o) const {
    return fmt::format("cutout({}, fill=[{}])", o.size, fmt::join(o.fill, ", "));
  }
  std::string operator()(const OneHot& o) const {
    return fmt::format("one_hot({}, smoothing={}, field={})", o.classes, o.smoothing, o.field);
  }
  std::string operator()(const Mixup& o) const {
    return fmt::format("mixup(alpha={}, probability={})", o.alpha, o.probability);
  }
  std::string operator()(const Cutmix& o) const {
    return fmt::format("cutmix(alpha={}, probability={})", o.alpha, o.probability);
  }
  std::string operator()(const UserMap& o) const {
    return fmt::format("user_map('{}', version={}, field={}, output={} {})", o.name, o.version, o.field,
                       to_string(o.output.dtype), o.output.shape.to_string());
  }
};

}  // namespace

Operations pad_crop(int size, int pad, Padding padding) {
  return Operation{PadCrop{.size = size, .pad = pad, .padding = padding}};
}
Operations flip(float probability) { return Operation{Flip{.probability = probability}}; }
Operations alternating_flip() { return Operation{Flip{.draw = FlipDraw::kAlternating}}; }
Operations normalize(std::vector<float> mean, std::vector<float> std) {
  return Operation{Normalize{.mean = std::move(mean), .std = std::move(std)}};
}
Operations cast(DType to) { return Operation{Cast{.to = to}}; }
Operations to_layout(ImageLayout layout) { return Operation{ToLayout{.to = layout}}; }
Operations flatten() { return Operation{FlattenSample{}}; }
Operations random_resized_crop(RandomResizedCrop options) { return Operation{options}; }
Operations resize(int size) { return Operation{Resize{.size = size}}; }
Operations center_crop(int size) { return Operation{CenterCrop{.size = size}}; }
Operations user_map(UserMap map) { return Operation{std::move(map)}; }
Operations color_jitter(ColorJitter options) { return Operation{options}; }
Operations brightness_contrast(BrightnessContrast options) { return Operation{options}; }
Operations cutout(int size, std::vector<float> fill) {
  return Operation{Cutout{.size = size, .fill = std::move(fill)}};
}
Operations one_hot(int classes, float smoothing) {
  return Operation{OneHot{.classes = classes, .smoothing = smoothing}};
}
Operations mixup(Mixup options) { return Operation{options}; }
Operations cutmix(Cutmix options) { return Operation{options}; }

bool is_random(const Operation& operation) {
  return std::holds_alternative<PadCrop>(operation) || std::holds_alternative<Flip>(operation) ||
         std::holds_alternative<RandomResizedCrop>(operation) || std::holds_alternative<ColorJitter>(operation) ||
         std::holds_alternative<BrightnessContrast>(operation) || std::holds_alternative<Cutout>(operation) ||
         is_batch_level(operation);
}

bool is_batch_level(const Operation& operation) {
  return std::holds_alternative<Mixup>(operation) || std::holds_alternative<Cutmix>(operation);
}

const std::string& field_of(const Operation& operation) {
  static const std::string image = "image";
  if (const auto* user = std::get_if<UserMap>(&operation)) return user->field;
  if (const auto* one_hot = std::get_if<OneHot>(&operation)) return one_hot->field;
  return image;
}

std::string describe(const Operation& operation) { return std::visit(DescribeOperation{}, operation); }

Field apply_to_field(const Operation& operation, const Field& field) {
  const std::string name = describe(operation);
  Apply apply{.field = field, .name = name};
  std::visit(apply, operation);
  return apply.field;
}

}  // namespace headrace
