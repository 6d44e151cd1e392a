// Depthwise convolutions of GpuKernels. They are bound by memory: each reads its operands once, up to what caches
// keep of overlapping windows. Private to the CUDA backend.
#pragma once

#include "headrace/devices/cuda/math/activation_math.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/pooling_work.h"

namespace headrace::cuda {

// Images hold fewer than 2^31 elements (kernel_checks.cpp), so indices within one are 32-bit.
struct DepthwiseShape {
  PixelGrid in, out;
  int channels, outputs, multiplier;
  int high, wide;  // of the kernel
  HeightWidth stride, dilation;
  int pad_top, pad_left;
  Divisor by_stride_down, by_stride_right;

  // Returns the pixel's number in x of a tap of an output pixel; -1 in the padding.
  HEADRACE_HOST_DEVICE std::int64_t input(const Pixel& at, int row, int column) const {
    const int y = at.y * stride.height - pad_top + row * dilation.height;
    const int x = at.x * stride.width - pad_left + column * dilation.width;
    if (y < 0 || y >= in.height || x < 0 || x >= in.width) return -1;
    return at.image * in.height * in.width + (y * in.width + x);
  }
  // Returns the number of the output pixel of which the tap reads this pixel of x; -1 if there is none.
  HEADRACE_HOST_DEVICE std::int64_t output(const Pixel& at, int row, int column) const {
    const int down = at.y + pad_top - row * dilation.height, right = at.x + pad_left - column * dilation.width;
    if (down < 0 || right < 0) return -1;
    const int y = static_cast<int>(by_stride_down.quotient(down));
    const int x = static_cast<int>(by_stride_right.quotient(right));
    if (y * stride.height != down || x * stride.width != right || y >= out.height || x >= out.width) return -1;
    return at.image * out.height * out.width + (y * out.width + x);
  }
};

// Windows of 3 x 3, whose weights a thread keeps in registers, or of any size (0).
template <int kWindow>
struct DepthwiseWeights {
  const float* weights;
  int taps;

  template <int kWidth>
  struct Own {
    float values[kWindow > 0 ? kWindow* kWindow : 1][kWidth];
  };
  // Of the outputs [output, output + kWidth).
  template <int kWidth>
  HEADRACE_HOST_DEVICE Own<kWidth> begin(std::int64_t output) const {
    Own<kWidth> own{};
    for (int tap = 0; tap < kWindow * kWindow; ++tap) {
      for (int k = 0; k < kWidth; ++k) own.values[tap][k] = weights[(output + k) * taps + tap];
    }
    return own;
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE float value(const Own<kWidth>& own, std::int64_t output, int tap, int k) const {
    if constexpr (kWindow > 0) return own.values[tap][k];
    return weights[(output + k) * taps + tap];
  }
};

// A row is a pixel of the output, a column one of its channels. kWidth is 1 unless each channel has one filter.
template <typename T, Activation kActivation, int kWindow>
struct DepthwiseForward {
  static constexpr int kResidentBlocks = 3;

  DepthwiseShape shape;
  DepthwiseWeights<kWindow> filters;
  const T* x;
  const float* bias;  // null: 0
  T* y;

  template <int kWidth>
  HEADRACE_HOST_DEVICE auto begin(std::int64_t column) const {
    return filters.template begin<kWidth>(column);
  }
  template <int kWidth, typename Own>
  HEADRACE_HOST_DEVICE void run(const Own& own, std::int64_t row, std::int64_t column) const {
    const Pixel at = shape.out.pixel(row);
    const std::int64_t channel = kWidth > 1 ? column : column / shape.multiplier;
    const int high = kWindow > 0 ? kWindow : shape.high, wide = kWindow > 0 ? kWindow : shape.wide;
    float sums[kWidth];
    for (int k = 0; k < kWidth; ++k) sums[k] = bias != nullptr ? bias[column + k] : 0.0F;
    HEADRACE_UNROLLED(unrolled(kWindow))
    for (int i = 0; i < high; ++i) {
      HEADRACE_UNROLLED(unrolled(kWindow))
      for (int j = 0; j < wide; ++j) {
        const std::int64_t from = shape.input(at, i, j);
        if (from < 0) continue;
        const Pack<T, kWidth> values = load_pack<kWidth>(x + from * shape.channels + channel);
        for (int k = 0; k < kWidth; ++k) {
          sums[k] += value_of(values.values[k]) * filters.template value<kWidth>(own, column, i * wide + j, k);
        }
      }
    }
    Pack<T, kWidth> pack;
    for (int k = 0; k < kWidth; ++k) pack.values[k] = element_of<T>(activated<T>(kActivation, sums[k]));
    store_pack(y + row * shape.outputs + column, pack);
  }
};

// A row is a pixel of x, a column one of its channels. kWidth is 1 unless each channel has one filter.
template <typename T, int kWindow>
struct DepthwiseInputGradient {
  static constexpr int kResidentBlocks = 3;

  DepthwiseShape shape;
  DepthwiseWeights<kWindow> filters;
  const T* dy;
  T* dx;

  template <int kWidth>
  HEADRACE_HOST_DEVICE auto begin(std::int64_t column) const {
    return filters.template begin<kWidth>(column * shape.multiplier);
  }
  template <int kWidth, typename Own>
  HEADRACE_HOST_DEVICE void run(const Own& own, std::int64_t row, std::int64_t column) const {
    const Pixel at = shape.in.pixel(row);
    const int high = kWindow > 0 ? kWindow : shape.high, wide = kWindow > 0 ? kWindow : shape.wide;
    float sums[kWidth] = {};
    HEADRACE_UNROLLED(unrolled(kWindow))
    for (int i = 0; i < high; ++i) {
      HEADRACE_UNROLLED(unrolled(kWindow))
      for (int j = 0; j < wide; ++j) {
        const std::int64_t from = shape.output(at, i, j);
        if (from >= 0) add_tap<kWidth>(own, from * shape.outputs, column, i * wide + j, sums);
      }
    }
    Pack<T, kWidth> pack;
    for (int k = 0; k < kWidth; ++k) pack.values[k] = element_of<T>(sums[k]);
    store_pack(dx + row * shape.channels + column, pack);
  }

 private:
  template <int kWidth, typename Own>
  HEADRACE_HOST_DEVICE void add_tap(const Own& own, std::int64_t pixel, std::int64_t column, int tap,
                                    float (&sums)[kWidth]) const {
    if constexpr (kWidth > 1) {
      const Pack<T, kWidth> slopes = load_pack<kWidth>(dy + pixel + column);
      for (int k = 0; k < kWidth; ++k) {
        sums[k] += value_of(slopes.values[k]) * filters.template value<kWidth>(own, column, tap, k);
      }
    } else {
      const std::int64_t first = column * shape.multiplier;
      sums[0] += value_of(dy[pixel + first]) * filters.template value<1>(own, first, tap, 0);
      for (int m = 1; m < shape.multiplier; ++m) {
        sums[0] += value_of(dy[pixel + first + m]) * filters.weights[(first + m) * filters.taps + tap];
      }
    }
  }
};

// Sums over the output's pixels: a row is one, a column tap * outputs + output.
template <typename T>
struct DepthwiseWeightGradient {
  using Total = Sum<float>;

  DepthwiseShape shape;
  const T* x;
  const T* dy;
  std::int64_t pixels;
  float* dweights;

  struct Own {
    int row, column;  // of the tap
    std::int64_t channel, output;
  };
  HEADRACE_HOST_DEVICE std::int64_t rows() const { return pixels; }
  template <int kWidth>
  HEADRACE_HOST_DEVICE Own begin(std::int64_t column) const {
    const std::int64_t tap = column / shape.outputs, output = column % shape.outputs;
    return {static_cast<int>(tap / shape.wide), static_cast<int>(tap % shape.wide), output / shape.multiplier,
            output};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void add(const Own& own, Total (&totals)[kWidth], std::int64_t row, std::int64_t) const {
    const std::int64_t from = shape.input(shape.out.pixel(row), own.row, own.column);
    if (from < 0) return;
    const Pack<T, kWidth> values = load_pack<kWidth>(x + from * shape.channels + own.channel);
    const Pack<T, kWidth> slopes = load_pack<kWidth>(dy + row * shape.outputs + own.output);
    for (int k = 0; k < kWidth; ++k) totals[k].value += value_of(values.values[k]) * value_of(slopes.values[k]);
  }
  HEADRACE_HOST_DEVICE void finish(std::int64_t column, const Sum<double>& total) const {
    const std::int64_t tap = column / shape.outputs, output = column % shape.outputs;
    dweights[output * (shape.high * shape.wide) + tap] = static_cast<float>(total.value);
  }
};

inline DepthwiseShape depthwise_shape(const TensorView& x, const TensorView& weights, const TensorView& y,
                                      const ConvOptions& options) {
  return {.in = {x.shape[1], x.shape[2]},
          .out = {y.shape[1], y.shape[2]},
          .channels = static_cast<int>(x.shape[3]),
          .outputs = static_cast<int>(y.shape[3]),
          .multiplier = static_cast<int>(y.shape[3] / x.shape[3]),
          .high = static_cast<int>(weights.shape[1]),
          .wide = static_cast<int>(weights.shape[2]),
          .stride = options.stride,
          .dilation = options.dilation,
          .pad_top = options.pad_top,
          .pad_left = options.pad_left,
          .by_stride_down = Divisor(options.stride.height),
          .by_stride_right = Divisor(options.stride.width)};
}

// Calls function(integral_constant) with the window of DepthwiseWeights.
template <typename Function>
void by_depthwise_window(const TensorView& weights, const Function& function) {
  if (weights.shape[1] == 3 && weights.shape[2] == 3) return function(std::integral_constant<int, 3>{});
  function(std::integral_constant<int, 0>{});
}

// Returns whether threads may take packs of neighbouring channels, which x and y then have alike.
inline bool depthwise_packs_fit(const TensorView& x, const TensorView& y) {
  return x.shape[3] == y.shape[3] && x.shape[3] % kNarrowWidth == 0 && packs_fit(kNarrowWidth, x, y);
}

// The matrix over whose rows DepthwiseWeightGradient sums; it is never in memory.
inline TensorView depthwise_products(const TensorView& dweights, const TensorView& dy) {
  const std::int64_t outputs = dy.shape[3];
  return {.data = nullptr, .shape = {dy.elements() / outputs, dweights.elements()}, .dtype = DType::kF32};
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::DepthwiseForward& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const auto run = [&]<typename T>(T, auto which, auto window) {
      const DepthwiseShape shape = depthwise_shape(of.x, of.weights, of.y, of.options);
      const DepthwiseForward<T, which(), window()> work{shape,
                                                        {of.weights.as<float>(), shape.high * shape.wide},
                                                        of.x.as<T>(),
                                                        of.bias.as<float>(),
                                                        of.y.as<T>()};
      const std::int64_t outputs = of.y.shape[3];
      by_width<kNarrowWidth>(depthwise_packs_fit(of.x, of.y), [&](auto width) {
        launch.template columns<width()>(work, column_grid(of.y.elements() / outputs, outputs, width()));
      });
    };
    by_type(of.y.dtype, [&](auto type) {
      by_fused_activation(of.activation, [&](auto which) {
        by_depthwise_window(of.weights, [&](auto window) { run(type, which, window); });
      });
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::DepthwiseBackwardData& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    by_type(of.dx.dtype, [&]<typename T>(T) {
      by_depthwise_window(of.weights, [&](auto window) {
        const DepthwiseShape shape = depthwise_shape(of.dx, of.weights, of.dy, of.options);
        const DepthwiseInputGradient<T, window()> work{
            shape, {of.weights.as<float>(), shape.high * shape.wide}, of.dy.as<T>(), of.dx.as<T>()};
        const std::int64_t channels = of.dx.shape[3];
        by_width<kNarrowWidth>(depthwise_packs_fit(of.dx, of.dy), [&](auto width) {
          launch.template columns<width()>(work, column_grid(of.dx.elements() / channels, channels, width()));
        });
      });
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::DepthwiseBackwardWeights& of) {
  bias_gradient(stream, name_of(of), of.dy, of.dbias);
  if (!of.dweights.defined()) return;
  const TensorView products = depthwise_products(of.dweights, of.dy);
  launches_.submit(stream, name_of(of), reduction_scratch_bytes(products), [=](auto& launch, void* scratch) {
    const std::int64_t pixels = products.shape[0], columns = products.shape[1];
    by_type(of.dy.dtype, [&]<typename T>(T) {
      const DepthwiseWeightGradient<T> work{depthwise_shape(of.x, of.dweights, of.dy, of.options), of.x.as<T>(),
                                            of.dy.as<T>(), pixels, of.dweights.as<float>()};
      by_width<kNarrowWidth>(depthwise_packs_fit(of.x, of.dy), [&](auto width) {
        launch.template reduce<width()>(work, column_grid(pixels, columns, width()), scratch);
      });
    });
  });
}

}  // namespace headrace::cuda
