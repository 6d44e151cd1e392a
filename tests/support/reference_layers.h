// Layers as the plainest loops over their formulas.
#pragma once

#include <cmath>
#include <optional>

#include "headrace/devices/kernels.h"
#include "headrace/tests/support/reference.h"

namespace headrace::test {

// Oracle of the convolution: x (n, h, w, c), weights (o, kh, kw, c / groups), y (n, h', w', o).

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

// Oracle of the dense layer: x (rows, inputs), weights (outputs, inputs), y (rows, outputs).

struct DenseSizes {
  std::size_t rows, inputs, outputs;

  // function(row, input, output) over all products.
  template <typename Function>
  void each(const Function& function) const {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t out = 0; out < outputs; ++out) {
        for (std::size_t in = 0; in < inputs; ++in) function(row, in, out);
      }
    }
  }
};

// `bias` may be empty.
inline Reals dense_forward(const DenseSizes& s, const Reals& x, const Reals& weights, const Reals& bias) {
  Reals y(s.rows * s.outputs);
  for (std::size_t i = 0; i < y.size() && !bias.empty(); ++i) y[i] = bias[i % s.outputs];
  s.each([&](auto row, auto in, auto out) {
    y[row * s.outputs + out] += x[row * s.inputs + in] * weights[out * s.inputs + in];
  });
  return y;
}

inline Reals dense_backward_data(const DenseSizes& s, const Reals& dy, const Reals& weights) {
  Reals dx(s.rows * s.inputs);
  s.each([&](auto row, auto in, auto out) {
    dx[row * s.inputs + in] += dy[row * s.outputs + out] * weights[out * s.inputs + in];
  });
  return dx;
}

inline Reals dense_backward_weights(const DenseSizes& s, const Reals& x, const Reals& dy) {
  Reals dweights(s.outputs * s.inputs);
  s.each([&](auto row, auto in, auto out) {
    dweights[out * s.inputs + in] += x[row * s.inputs + in] * dy[row * s.outputs + out];
  });
  return dweights;
}

// The sum over all axes but the last, `columns` long.
inline Reals column_sums(const Reals& x, std::size_t columns) {
  Reals sums(columns);
  for (std::size_t i = 0; i < x.size(); ++i) sums[i % columns] += x[i];
  return sums;
}

// Oracles of pooling over (n, h, w, c).

struct PoolSizes {
  std::size_t images, height, width, channels;
  PoolOptions options{};

  std::size_t window() const { return static_cast<std::size_t>(options.window); }
  std::size_t stride() const { return static_cast<std::size_t>(options.stride); }
  std::size_t pad() const { return static_cast<std::size_t>(options.pad); }
  std::size_t out_height() const { return (height + 2 * pad() - window()) / stride() + 1; }
  std::size_t out_width() const { return (width + 2 * pad() - window()) / stride() + 1; }
  std::size_t y_count() const { return images * out_height() * out_width() * channels; }

  // The index in x of a window's `position` for the output `to`; nothing for padding.
  std::optional<std::size_t> source(std::size_t to, std::size_t position) const {
    const std::size_t channel = to % channels, pixel = to / channels;
    const std::size_t column = pixel % out_width() * stride() + position % window() - pad();
    const std::size_t row = pixel / out_width() % out_height() * stride() + position / window() - pad();
    if (column >= width || row >= height) return std::nullopt;  // below zero is far above
    return ((pixel / (out_width() * out_height()) * height + row) * width + column) * channels + channel;
  }
};

struct Pooled {
  Reals y;
  std::vector<std::uint8_t> argmax;
};

inline Pooled max_pool_forward(const PoolSizes& s, const Reals& x) {
  Pooled pooled{Reals(s.y_count()), std::vector<std::uint8_t>(s.y_count())};
  for (std::size_t to = 0; to < s.y_count(); ++to) {
    std::optional<std::size_t> best;
    for (std::size_t position = 0; position < s.window() * s.window(); ++position) {
      const std::optional<std::size_t> from = s.source(to, position);
      if (from && (!best || x[*from] > x[*s.source(to, *best)])) best = position;
    }
    pooled.y[to] = x[*s.source(to, *best)];
    pooled.argmax[to] = static_cast<std::uint8_t>(*best);
  }
  return pooled;
}

inline Reals max_pool_backward(const PoolSizes& s, const Reals& dy, const std::vector<std::uint8_t>& argmax) {
  Reals dx(s.images * s.height * s.width * s.channels);
  for (std::size_t to = 0; to < s.y_count(); ++to) dx[*s.source(to, argmax[to])] += dy[to];
  return dx;
}

// x (n, pixels, c) -> (n, c)
inline Reals global_average(const Reals& x, std::size_t images, std::size_t pixels, std::size_t channels) {
  Reals y(images * channels);
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i / (pixels * channels) * channels + i % channels] += x[i] / static_cast<double>(pixels);
  }
  return y;
}

// Oracle of batch normalisation of a matrix (rows, channels) of which the first `real` rows count.

struct NormSizes {
  std::size_t rows, real, channels;
};

struct Statistics {
  Reals mean, variance;  // biased
};

inline Statistics statistics(const NormSizes& s, const Reals& x) {
  Statistics of{Reals(s.channels), Reals(s.channels)};
  const auto count = static_cast<double>(s.real);
  for (std::size_t i = 0; i < s.real * s.channels; ++i) of.mean[i % s.channels] += x[i] / count;
  for (std::size_t i = 0; i < s.real * s.channels; ++i) {
    const double distance = x[i] - of.mean[i % s.channels];
    of.variance[i % s.channels] += distance * distance / count;
  }
  return of;
}

inline Reals normalized(const NormSizes& s, const Reals& x, const Statistics& by, const Reals& gamma,
                        const Reals& beta, double epsilon) {
  Reals y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % s.channels;
    y[i] = (x[i] - by.mean[c]) / std::sqrt(by.variance[c] + epsilon) * gamma[c] + beta[c];
  }
  return y;
}

}  // namespace headrace::test
