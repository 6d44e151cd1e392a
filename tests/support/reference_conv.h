// Oracle of the convolution: x (n, h, w, c), weights (o, kh, kw, c / groups), y (n, h', w', o).
#pragma once

#include "headrace/devices/kernels.h"
#include "headrace/tests/support/reference.h"

namespace headrace::test {

struct ConvSizes {
  std::int64_t images, height, width, channels, outputs, kernel_height, kernel_width;
  ConvOptions options{};

  std::int64_t out_height() const {
    const std::int64_t span = (kernel_height - 1) * options.dilation.height + 1;
    return (height + options.pad_top + options.pad_bottom - span) / options.stride.height + 1;
  }
  std::int64_t out_width() const {
    const std::int64_t span = (kernel_width - 1) * options.dilation.width + 1;
    return (width + options.pad_left + options.pad_right - span) / options.stride.width + 1;
  }
  std::int64_t group_channels() const { return channels / options.groups; }
  std::int64_t x_count() const { return images * height * width * channels; }
  std::int64_t y_count() const { return images * out_height() * out_width() * outputs; }
  std::int64_t weights_count() const { return outputs * kernel_height * kernel_width * group_channels(); }

  // function(index in x, index in weights, index in y) over all products.
  template <typename Function>
  void each(const Function& function) const {
    const std::int64_t pixels = images * out_height() * out_width();
    const std::int64_t taps = kernel_height * kernel_width;
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      const std::int64_t image = pixel / (out_height() * out_width());
      const std::int64_t out_row = pixel / out_width() % out_height();
      const std::int64_t out_column = pixel % out_width();
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t row =
            out_row * options.stride.height - options.pad_top + tap / kernel_width * options.dilation.height;
        const std::int64_t column =
            out_column * options.stride.width - options.pad_left + tap % kernel_width * options.dilation.width;
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        const std::int64_t from = ((image * height + row) * width + column) * channels;
        for (std::int64_t o = 0; o < outputs; ++o) {
          const std::int64_t first = o / (outputs / options.groups) * group_channels();
          for (std::int64_t c = 0; c < group_channels(); ++c) {
            function(static_cast<std::size_t>(from + first + c),
                     static_cast<std::size_t>((o * taps + tap) * group_channels() + c),
                     static_cast<std::size_t>(pixel * outputs + o));
          }
        }
      }
    }
  }
};

// Returns "stride 2,1 dilation 1,1 groups 1".
inline std::string window_text(const ConvOptions& options) {
  const auto pair = [](const HeightWidth& numbers) {
    return std::to_string(numbers.height) + "," + std::to_string(numbers.width);
  };
  return "stride " + pair(options.stride) + " dilation " + pair(options.dilation) + " groups " +
         std::to_string(options.groups);
}

// `bias` may be empty.
inline Reals conv_forward(const ConvSizes& s, const Reals& x, const Reals& weights, const Reals& bias) {
  Reals y(static_cast<std::size_t>(s.y_count()));
  for (std::size_t i = 0; i < y.size() && !bias.empty(); ++i) y[i] = bias[i % bias.size()];
  s.each([&](auto from, auto weight, auto to) { y[to] += x[from] * weights[weight]; });
  return y;
}

inline Reals conv_backward_data(const ConvSizes& s, const Reals& dy, const Reals& weights) {
  Reals dx(static_cast<std::size_t>(s.x_count()));
  s.each([&](auto from, auto weight, auto to) { dx[from] += dy[to] * weights[weight]; });
  return dx;
}

inline Reals conv_backward_weights(const ConvSizes& s, const Reals& x, const Reals& dy) {
  Reals dweights(static_cast<std::size_t>(s.weights_count()));
  s.each([&](auto from, auto weight, auto to) { dweights[weight] += x[from] * dy[to]; });
  return dweights;
}

}  // namespace headrace::test
