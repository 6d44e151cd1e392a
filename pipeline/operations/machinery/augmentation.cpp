#include "headrace/pipeline/operations/machinery/augmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/kernels/color_kernels.h"
#include "headrace/pipeline/operations/machinery/affine_operation.h"

namespace headrace {
namespace {

bool is_signed(AugmentationKind kind) {
  return kind >= AugmentationKind::kShearX && kind <= AugmentationKind::kSharpness;
}

// Returns whole pixels, rounded down.
double translation(const AugmentationSpace& space, int bin, int bins, std::int64_t side) {
  const std::int64_t full = space.translate_numerator * (space.translates_pixels ? 1 : side);
  return static_cast<double>(full * bin / (space.translate_denominator * (bins - 1)));
}

double magnitude_of(AugmentationKind kind, const AugmentationSpace& space, int bin, int bins,
                    const ImageSize& image) {
  const double part = static_cast<double>(bin) / (bins - 1);
  switch (kind) {
    case AugmentationKind::kShearX:
    case AugmentationKind::kShearY: return space.shear * part;
    case AugmentationKind::kTranslateX: return translation(space, bin, bins, image.width);
    case AugmentationKind::kTranslateY: return translation(space, bin, bins, image.height);
    case AugmentationKind::kRotate: return space.degrees * part;
    case AugmentationKind::kBrightness:
    case AugmentationKind::kColor:
    case AugmentationKind::kContrast:
    case AugmentationKind::kSharpness: return space.factor * part;
    case AugmentationKind::kPosterize: return std::nearbyint(8 - space.bits * part);
    case AugmentationKind::kSolarize: return 255.0 * (bins - 1 - bin) / (bins - 1);
    default: return 0;
  }
}

// Shears and moves begin at the image's corner, as Pillow's do.
AffineMap moved_by(const Augmentation& augmentation, const LevelWork& image) {
  AffineMap map;
  switch (augmentation.kind) {
    case AugmentationKind::kShearX: map.xy = augmentation.amount; break;
    case AugmentationKind::kShearY: map.yx = augmentation.amount; break;
    case AugmentationKind::kTranslateX: map.x0 = -augmentation.amount; break;
    case AugmentationKind::kTranslateY: map.y0 = -augmentation.amount; break;
    default:
      map = source_map(
          {.degrees = -augmentation.amount,
           .center = {.x = static_cast<double>(image.width) / 2, .y = static_cast<double>(image.height) / 2}});
  }
  return map;
}

void move_image(const Augmentation& augmentation, const AugmentationStyle& style, const LevelWork& image) {
  warp({.from = reinterpret_cast<const std::byte*>(image.from),
        .height = image.height,
        .width = image.width,
        .pixel_bytes = style.fill.size(),
        .source = moved_by(augmentation, image),
        .fill = style.fill.data(),
        .to = reinterpret_cast<std::byte*>(image.to)},
       style.interpolation);
}

void change_color(ColorProperty property, double change, const LevelWork& image) {
  ColorPlan plan{.changes = {}, .count = 1};
  plan.changes[0] = {.property = property, .amount = static_cast<float>(1 + change)};
  change_colors(plan, image.from, image.height * image.width, image.to);
}

}  // namespace

Augmentation draw_augmentation(const AugmentationSpace& space, int bin, int bins, const ImageSize& image,
                               Philox& random) {
  const auto kind = static_cast<AugmentationKind>(random.below(kAugmentations));
  const bool negative = random.below(2) == 1;
  const double magnitude = magnitude_of(kind, space, bin, bins, image);
  return {.kind = kind, .amount = negative && is_signed(kind) ? -magnitude : magnitude};
}

AugmentationStyle augmentation_style(const std::vector<float>& fill, Interpolation interpolation) {
  AugmentationStyle style{.interpolation = interpolation};
  for (std::size_t c = 0; c < style.fill.size(); ++c) {
    style.fill[c] = static_cast<std::byte>(std::nearbyint(fill[fill.size() == 1 ? 0 : c]));
  }
  return style;
}

void augment(const Augmentation& augmentation, const AugmentationStyle& style, const LevelWork& image) {
  const double amount = augmentation.amount;
  switch (augmentation.kind) {
    case AugmentationKind::kIdentity:
      std::memcpy(image.to, image.from, static_cast<std::size_t>(image.elements()));
      return;
    case AugmentationKind::kBrightness: return change_color(ColorProperty::kBrightness, amount, image);
    case AugmentationKind::kColor: return change_color(ColorProperty::kSaturation, amount, image);
    case AugmentationKind::kContrast: return change_color(ColorProperty::kContrast, amount, image);
    case AugmentationKind::kSharpness: return sharpen_levels(image, static_cast<float>(1 + amount));
    case AugmentationKind::kPosterize: return posterize_levels(image, static_cast<int>(amount));
    case AugmentationKind::kSolarize: return solarize_levels(image, static_cast<int>(std::ceil(amount)));
    case AugmentationKind::kAutocontrast: return stretch_levels(image);
    case AugmentationKind::kEqualize: return equalize_levels(image);
    default: return move_image(augmentation, style, image);
  }
}

void want_augmentable(const FieldChecks& checks, const Field& image, const std::vector<float>& fill, int bins) {
  if (image.shape[2] != 3) checks.refuse("an image of three channels, RGB, is needed");
  want_fill(checks, image, fill);
  if (bins < 2 || bins > kMaxSide) checks.refuse(fmt::format("the bins are not within 2 and {}", kMaxSide));
}

void refuse_to_move_along(const OperationDefinition& operation) {
  throw ConfigError(operation.describe() + ": masks and boxes cannot be moved along",
                    "random_affine() moves them; color_jitter() and others leave them where they are");
}

}  // namespace headrace
