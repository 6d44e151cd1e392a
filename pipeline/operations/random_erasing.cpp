#include <cmath>

#include "headrace/pipeline/operations/cutout.h"
#include "headrace/pipeline/operations/kernels/portable_math.h"
#include "headrace/pipeline/operations/machinery/pixel_pass.h"

namespace headrace {
namespace {

constexpr int kErasingTries = 10;

class RandomErasingDefinition final : public DataOperation<RandomErasing> {
 public:
  using DataOperation::DataOperation;

  bool is_random() const noexcept override { return true; }

  Field apply(const Field& before) const override {
    const FieldChecks checks(*this, before);
    want_hole(checks, before, options_.fill);
    checks.want_probability(options_.probability);
    checks.want_area_and_ratio(options_.area, options_.ratio);
    return before;
  }

  bool join(PixelPass& pass, const OperationPlace& place) const override {
    if (!pass.abilities.cuts) return false;
    pass.holes.push_back({.options = options_, .number = place.number});
    return true;
  }
};

}  // namespace

OperationPtr define(RandomErasing options) {
  return std::make_shared<RandomErasingDefinition>(std::move(options));
}

Operations random_erasing(RandomErasing options) { return Operation{std::move(options)}; }

ImageWindow draw_hole(const RandomErasing& options, const ImageSize& image, Philox& random) {
  if (!(random.uniform() < options.probability)) return {};
  const double area = static_cast<double>(image.height) * static_cast<double>(image.width);
  const double low = logarithm(options.ratio[0]), high = logarithm(options.ratio[1]);
  for (int i = 0; i < kErasingTries; ++i) {
    const double share =
        options.area[0] + (static_cast<double>(options.area[1]) - options.area[0]) * random.uniform();
    const double ratio = exponential(low + (high - low) * random.uniform());
    const auto height = static_cast<std::int64_t>(std::lround(std::sqrt(area * share * ratio)));
    const auto width = static_cast<std::int64_t>(std::lround(std::sqrt(area * share / ratio)));
    if (height >= image.height || width >= image.width) continue;
    ImageWindow hole{.height = height, .width = width};
    hole.top = random.below(static_cast<std::uint32_t>(image.height - height + 1));
    hole.left = random.below(static_cast<std::uint32_t>(image.width - width + 1));
    return hole;
  }
  return {};
}

}  // namespace headrace
