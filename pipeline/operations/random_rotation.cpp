#include "headrace/pipeline/operations/machinery/affine_operation.h"

namespace headrace {
namespace {

// Draws whether to turn, then the angle.
class RotationDraw final : public AffineDraw {
 public:
  explicit RotationDraw(RandomRotation options) : options_(std::move(options)) {}

  std::optional<AffineMap> draw(const ImageSize& image, Philox& random) const override {
    if (!(random.uniform() < options_.probability)) return std::nullopt;
    const auto [low, high] = options_.degrees;
    const double degrees = low + (static_cast<double>(high) - low) * random.uniform();
    const Point middle{.x = static_cast<double>(image.width) / 2, .y = static_cast<double>(image.height) / 2};
    return source_map({.degrees = -degrees, .center = middle});
  }

 private:
  RandomRotation options_;
};

class RandomRotationDefinition final : public AffineOperation<RandomRotation, RotationDraw> {
 public:
  using AffineOperation::AffineOperation;

 private:
  void check(const FieldChecks& checks) const override {
    want_degrees(checks, options_.degrees, "degrees", kMaxDegrees);
  }
};

}  // namespace

OperationPtr define(RandomRotation options) {
  return std::make_shared<RandomRotationDefinition>(std::move(options));
}

Operations random_rotation(RandomRotation options) { return Operation{std::move(options)}; }

}  // namespace headrace
