#include "headrace/pipeline/operations/random_window.h"

#include <algorithm>
#include <cmath>

#include "headrace/pipeline/operations/kernels/portable_math.h"

namespace headrace {
namespace {

constexpr int kTries = 10;

ImageWindow fallback(const RandomResizedCrop& options, const ImageSize& image) {
  const auto height = static_cast<double>(image.height);
  const auto width = static_cast<double>(image.width);
  ImageWindow window{.height = image.height, .width = image.width};
  if (width / height < options.min_ratio) {
    window.height = std::clamp<std::int64_t>(std::lround(width / options.min_ratio), 1, image.height);
  } else if (width / height > options.max_ratio) {
    window.width = std::clamp<std::int64_t>(std::lround(height * options.max_ratio), 1, image.width);
  }
  window.top = (image.height - window.height) / 2;
  window.left = (image.width - window.width) / 2;
  return window;
}

}  // namespace

ImageWindow draw_window(const RandomResizedCrop& options, const ImageSize& image, Philox& random) {
  const double area = static_cast<double>(image.height) * static_cast<double>(image.width);
  const double low = logarithm(options.min_ratio);
  const double high = logarithm(options.max_ratio);
  for (int i = 0; i < kTries; ++i) {
    const double share =
        options.min_area + (static_cast<double>(options.max_area) - options.min_area) * random.uniform();
    const double ratio = exponential(low + (high - low) * random.uniform());
    const auto width = static_cast<std::int64_t>(std::lround(std::sqrt(area * share * ratio)));
    const auto height = static_cast<std::int64_t>(std::lround(std::sqrt(area * share / ratio)));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    ImageWindow window{.height = height, .width = width};
    window.top = random.below(static_cast<std::uint32_t>(image.height - height + 1));
    window.left = random.below(static_cast<std::uint32_t>(image.width - width + 1));
    return window;
  }
  return fallback(options, image);
}

}  // namespace headrace
