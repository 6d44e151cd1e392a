// Oracles of pooling over (n, h, w, c).
#pragma once

#include <optional>

#include "headrace/devices/kernels.h"
#include "headrace/tests/support/reference.h"

namespace headrace::test {

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

}  // namespace headrace::test
