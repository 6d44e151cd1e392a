#include "headrace/pipeline/stages/random_window.h"

#include <algorithm>
#include <cmath>

namespace headrace {
namespace {

constexpr int kTries = 10;

// e^x from additions and multiplications: libm's exp may differ by a bit between processors.
double exponential(double x) {
  int halvings = 0;
  for (; std::abs(x) > 0.5; x /= 2) ++halvings;
  double sum = 1;
  double term = 1;
  for (int k = 1; k <= 16; ++k) {
    term *= x / k;
    sum += term;
  }
  for (; halvings > 0; --halvings) sum *= sum;
  return sum;
}

// ln(x) for x > 0, 2 artanh((x - 1) / (x + 1)) after square roots brought x near 1.
double logarithm(double x) {
  double factor = 2;
  for (; x < 0.7 || x > 1.5; factor *= 2) x = std::sqrt(x);
  const double z = (x - 1) / (x + 1);
  double sum = 0;
  double power = z;
  for (int k = 1; k <= 31; k += 2) {
    sum += power / k;
    power *= z * z;
  }
  return factor * sum;
}

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
