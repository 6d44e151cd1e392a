#include <cmath>

#include "headrace/pipeline/operations/machinery/affine_operation.h"

namespace headrace {
namespace {

double drawn_between(float low, float high, Philox& random) {
  return low + (static_cast<double>(high) - low) * random.uniform();
}

// Draws whether to do anything, then the angle, the moves along x and y, the scale and the shears along x and y.
class RandomAffineDraw final : public AffineDraw {
 public:
  explicit RandomAffineDraw(RandomAffine options) : options_(std::move(options)) {}

  std::optional<AffineMap> draw(const ImageSize& image, Philox& random) const override {
    const RandomAffine& o = options_;
    if (!(random.uniform() < o.probability)) return std::nullopt;
    const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
    AffineParts parts{.center = {.x = width / 2, .y = height / 2}};
    parts.degrees = drawn_between(o.min_degrees, o.max_degrees, random);
    parts.move_x = std::nearbyint(width * drawn_between(-o.translate_x, o.translate_x, random));
    parts.move_y = std::nearbyint(height * drawn_between(-o.translate_y, o.translate_y, random));
    parts.scale = drawn_between(o.min_scale, o.max_scale, random);
    parts.shear_x = drawn_between(o.min_shear_x, o.max_shear_x, random);
    parts.shear_y = drawn_between(o.min_shear_y, o.max_shear_y, random);
    return source_map(parts);
  }

 private:
  RandomAffine options_;
};

class RandomAffineDefinition final : public AffineOperation<RandomAffine, RandomAffineDraw> {
 public:
  using AffineOperation::AffineOperation;

 private:
  void check(const FieldChecks& checks) const override {
    const RandomAffine& o = options_;
    want_degrees(checks, o.min_degrees, o.max_degrees, "degrees", kMaxDegrees);
    want_degrees(checks, o.min_shear_x, o.max_shear_x, "degrees of shear", kMaxShear);
    want_degrees(checks, o.min_shear_y, o.max_shear_y, "degrees of shear", kMaxShear);
    checks.want_finite({o.min_scale, o.max_scale});
    if (!(o.translate_x >= 0 && o.translate_x <= 1 && o.translate_y >= 0 && o.translate_y <= 1)) {
      checks.refuse("a part to translate by is not within 0 and 1");
    }
    if (!(o.min_scale > 0 && o.min_scale <= o.max_scale)) {
      checks.refuse("scales must satisfy 0 < min_scale <= max_scale");
    }
  }
};

}  // namespace

OperationPtr define(RandomAffine options) { return std::make_shared<RandomAffineDefinition>(std::move(options)); }

Operations random_affine(RandomAffine options) { return Operation{std::move(options)}; }

}  // namespace headrace
