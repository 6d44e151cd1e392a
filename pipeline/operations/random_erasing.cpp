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
    const RandomErasing& o = options_;
    if (!(o.min_area > 0 && o.min_area <= o.max_area && o.max_area <= 1)) {
      checks.refuse("areas must satisfy 0 < min_area <= max_area <= 1");
    }
    if (!(o.min_ratio > 0 && o.min_ratio <= o.max_ratio && std::isfinite(o.max_ratio))) {
      checks.refuse("ratios must satisfy 0 < min_ratio <= max_ratio < infinity");
    }
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
  const double low = logarithm(options.min_ratio), high = logarithm(options.max_ratio);
  for (int i = 0; i < kErasingTries; ++i) {
    const double share =
        options.min_area + (static_cast<double>(options.max_area) - options.min_area) * random.uniform();
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
