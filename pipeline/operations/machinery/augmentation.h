// The operations among which rand_augment() and trivial_augment_wide() draw.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "headrace/pipeline/decoders/image_size.h"
#include "headrace/pipeline/operations/kernels/level_kernels.h"
#include "headrace/pipeline/operations/machinery/image_operation.h"

namespace headrace {

enum class AugmentationKind {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutocontrast,
  kEqualize
};
inline constexpr std::uint32_t kAugmentations = 14;

// The strength of each at its full magnitude.
struct AugmentationSpace {
  double shear = 0;                                                 // pixels a row or column
  std::int64_t translate_numerator = 0, translate_denominator = 1;  // a part of the side, or pixels
  bool translates_pixels = false;
  double degrees = 0;
  double factor = 0;  // added to 1
  double bits = 0;    // that posterize drops
};

struct Augmentation {
  AugmentationKind kind = AugmentationKind::kIdentity;
  // Pixels a row or column, pixels, degrees, a factor, bits or a threshold: as the kind needs it.
  double amount = 0;
};

// Draws the kind, then its sign: two numbers. Its magnitude is bin / (bins - 1) of the full one.
Augmentation draw_augmentation(const AugmentationSpace& space, int bin, int bins, const ImageSize& image,
                               Philox& random);

// The pixel that shows beyond an RGB image, and the interpolation of its pixels.
struct AugmentationStyle {
  std::array<std::byte, 3> fill{};
  Interpolation interpolation = Interpolation::kNearest;
};
AugmentationStyle augmentation_style(const std::vector<float>& fill, Interpolation interpolation);

// Does one to an RGB image.
void augment(const Augmentation& augmentation, const AugmentationStyle& style, const LevelWork& image);

// Refuses other images than RGB, a fill that is none of their pixels, and numbers of bins below 2.
void want_augmentable(const FieldChecks& checks, const Field& image, const std::vector<float>& fill, int bins);

// Throws ConfigError: fields that are to be moved along would stay where they are.
[[noreturn]] void refuse_to_move_along(const OperationDefinition& operation);

}  // namespace headrace
