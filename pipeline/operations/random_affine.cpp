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
    parts.degrees = drawn_between(o.degrees[0], o.degrees[1], random);
    parts.move_x = std::nearbyint(width * drawn_between(-o.translate[0], o.translate[0], random));
    parts.move_y = std::nearbyint(height * drawn_between(-o.translate[1], o.translate[1], random));
    parts.scale = drawn_between(o.scale[0], o.scale[1], random);
    parts.shear_x = drawn_between(o.shear[0], o.shear[1], random);
    parts.shear_y = drawn_between(o.shear[2], o.shear[3], random);
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
    want_degrees(checks, o.degrees, "degrees", kMaxDegrees);
    want_degrees(checks, {o.shear[0], o.shear[1]}, "degrees of shear", kMaxShear);
    want_degrees(checks, {o.shear[2], o.shear[3]}, "degrees of shear", kMaxShear);
    checks.want_finite(o.scale);
    for (const float part : o.translate) {
      if (!(part >= 0 && part <= 1)) checks.refuse("a part to translate by is not within 0 and 1");
    }
    if (!(o.scale[0] > 0 && o.scale[0] <= o.scale[1])) checks.refuse("scale must satisfy 0 < minimum <= maximum");
  }
};

}  // namespace

OperationPtr define(RandomAffine options) { return std::make_shared<RandomAffineDefinition>(std::move(options)); }

Operations random_affine(RandomAffine options) { return Operation{std::move(options)}; }

}  // namespace headrace
