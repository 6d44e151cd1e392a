#include "headrace/devices/cpu/cpu_input_kernels.h"

#include <cstddef>
#include <cstdint>

namespace headrace {
namespace {

// Pixel `i`, channel `c` of an image is written to out[i * pixel + c * channel].
struct Steps {
  std::size_t pixel;
  std::size_t channel;
};

void convert(const PixelConversion& conversion) {
  const Shape& shape = conversion.pixels.shape;
  const auto images = static_cast<std::size_t>(shape[0]);
  const auto pixels = static_cast<std::size_t>(shape[1] * shape[2]);
  const auto channels = static_cast<std::size_t>(shape[3]);
  const Steps steps = conversion.layout == ImageLayout::kChannelsLast ? Steps{.pixel = channels, .channel = 1}
                                                              : Steps{.pixel = 1, .channel = pixels};
  const auto* scale = conversion.scale.as<const float>();
  const auto* shift = conversion.shift.as<const float>();
  for (std::size_t n = 0; n < images; ++n) {
    const auto* in = conversion.pixels.as<const std::uint8_t>() + n * pixels * channels;
    auto* out = conversion.out.as<float>() + n * pixels * channels;
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t i = 0; i < pixels; ++i) {
        const float product = static_cast<float>(in[i * channels + c]) * scale[c];
        out[i * steps.pixel + c * steps.channel] = product + shift[c];
      }
    }
  }
}

}  // namespace

void CpuInputKernels::convert_pixels(Stream& stream, const PixelConversion& conversion) {
  check_pixel_conversion(conversion);
  stream.call([conversion] { convert(conversion); });
}

}  // namespace headrace
