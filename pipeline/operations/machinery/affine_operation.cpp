#include "headrace/pipeline/operations/machinery/affine_operation.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace headrace {
namespace {

constexpr std::int64_t kMaxWarpedChannels = 4;

class AffineStep final : public Step {
 public:
  AffineStep(std::shared_ptr<const AffineDraw> draw, WarpStyle style, std::uint16_t number)
      : draw_(std::move(draw)), style_(std::move(style)), number_(number) {}

  bool takes_long() const noexcept override { return true; }

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override {
    const ImageSize size{.height = in.shape[0], .width = in.shape[1]};
    const std::span<std::byte> out = output.take(in.bytes.size());
    Philox random = context.random(number_);
    if (const std::optional<AffineMap> source = draw_->draw(size, random)) {
      warp({.from = in.bytes.data(),
            .height = size.height,
            .width = size.width,
            .pixel_bytes = style_.fill.size(),
            .source = *source,
            .fill = style_.fill.data(),
            .to = out.data()},
           style_.interpolation);
    } else {
      std::memcpy(out.data(), in.bytes.data(), out.size());
    }
    return {.bytes = out, .shape = in.shape};
  }

 private:
  std::shared_ptr<const AffineDraw> draw_;
  WarpStyle style_;
  std::uint16_t number_;
};

class AffineMover final : public PixelMover {
 public:
  AffineMover(std::shared_ptr<const AffineDraw> draw, std::uint16_t number)
      : draw_(std::move(draw)), number_(number) {}

  PixelMove move(const ImageSize& image, const StepContext& context) const override {
    Philox random = context.random(number_);
    return {.size = image, .source = draw_->draw(image, random).value_or(AffineMap{})};
  }

 private:
  std::shared_ptr<const AffineDraw> draw_;
  std::uint16_t number_;
};

}  // namespace

WarpStyle warp_style(Interpolation interpolation, const std::vector<float>& fill, std::int64_t channels) {
  WarpStyle style{.interpolation = interpolation, .fill = {}};
  for (std::int64_t c = 0; c < channels; ++c) {
    const float level = fill[fill.size() == 1 ? 0 : static_cast<std::size_t>(c)];
    style.fill.push_back(static_cast<std::byte>(std::nearbyint(level)));
  }
  return style;
}

void want_fill(const FieldChecks& checks, const Field& image, const std::vector<float>& fill) {
  const std::int64_t channels = image.shape[2];
  if (channels > kMaxWarpedChannels)
    checks.refuse(fmt::format("it has more than {} channels", kMaxWarpedChannels));
  checks.want_finite(fill);
  const auto count = static_cast<std::int64_t>(fill.size());
  if (count != 1 && count != channels) checks.refuse(fmt::format("{} values for {} channels", count, channels));
  for (const float level : fill) {
    if (level < 0 || level > 255) checks.refuse("the fill is not within 0 and 255");
  }
}

void want_degrees(const FieldChecks& checks, const std::array<float, 2>& degrees, const char* what, float limit) {
  checks.want_finite(degrees);
  const auto [low, high] = degrees;
  if (!(low <= high)) checks.refuse(fmt::format("the range of {} ends before it begins", what));
  if (low < -limit || high > limit)
    checks.refuse(fmt::format("the {} are not within -{} and {}", what, limit, limit));
}

void warp(const WarpWork& work, Interpolation interpolation) {
  if (interpolation == Interpolation::kNearest) {
    warp_nearest(work);
  } else {
    warp_bilinear(work);
  }
}

std::unique_ptr<Step> affine_step(std::shared_ptr<const AffineDraw> draw, WarpStyle style, std::uint16_t number) {
  return std::make_unique<AffineStep>(std::move(draw), std::move(style), number);
}

std::shared_ptr<const PixelMover> affine_mover(std::shared_ptr<const AffineDraw> draw, std::uint16_t number) {
  return std::make_shared<AffineMover>(std::move(draw), number);
}

}  // namespace headrace
