// Convolutions of GpuKernels that no library computes. Private to the CUDA backend.
#pragma once

#include "headrace/devices/cuda/math/activation_math.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/direct_convolution.h"
#include "headrace/devices/cuda/math/direct_tiles_work.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/pooling_work.h"

namespace headrace::cuda {

// T is the type of x, y and the products, whose weights are rounded to it.
template <typename T, typename Window>
struct DirectConvolution {
  PixelGrid out;
  std::int64_t in_image;  // elements
  int in_line, stride;
  const T* x;
  const float* weights;          // or
  const BFloat16* half_weights;  // null: use `weights`
  const float* bias;             // null: 0

  template <int kWidth>
  struct Own {
    float bias[kWidth];
    float weights[Window::kValues][kWidth];
  };
  template <int kWidth>
  HEADRACE_HOST_DEVICE Own<kWidth> begin(std::int64_t column) const {
    Own<kWidth> own;
    for (int k = 0; k < kWidth; ++k) {
      own.bias[k] = bias != nullptr ? bias[column + k] : 0.0F;
      for (int i = 0; i < Window::kValues; ++i) own.weights[i][k] = weight((column + k) * Window::kValues + i);
    }
    return own;
  }
  // Computes the activation's input.
  template <int kWidth>
  HEADRACE_HOST_DEVICE void sum(const Own<kWidth>& own, std::int64_t row, float (&sums)[kWidth]) const {
    const Pixel pixel = out.pixel(row);
    const T* corner = x + pixel.image * in_image + (pixel.y * in_line + pixel.x * Window::kChannels) * stride;
    for (int k = 0; k < kWidth; ++k) sums[k] = own.bias[k];
    for (int i = 0; i < Window::kValues; ++i) {
      const float value = value_of(corner[i / Window::kLine * in_line + i % Window::kLine]);
      for (int k = 0; k < kWidth; ++k) sums[k] += value * own.weights[i][k];
    }
  }

 private:
  HEADRACE_HOST_DEVICE float weight(std::int64_t at) const {
    return half_weights != nullptr ? value_of(half_weights[at]) : value_of(element_of<T>(weights[at]));
  }
};

template <typename T, Activation kActivation, typename Window>
struct DirectForward {
  static constexpr int kResidentBlocks = std::is_same_v<T, float> ? 3 : 2;  // weights of four outputs, or of eight

  DirectConvolution<T, Window> convolution;
  T* y;
  std::int64_t outputs;

  template <int kWidth>
  HEADRACE_HOST_DEVICE auto begin(std::int64_t column) const {
    return convolution.template begin<kWidth>(column);
  }
  template <int kWidth, typename Own>
  HEADRACE_HOST_DEVICE void run(const Own& own, std::int64_t row, std::int64_t column) const {
    float sums[kWidth];
    convolution.template sum<kWidth>(own, row, sums);
    Pack<T, kWidth> pack;
    for (int k = 0; k < kWidth; ++k) pack.values[k] = element_of<T>(activated<T>(kActivation, sums[k]));
    store_pack(y + row * outputs + column, pack);
  }
};

// The sum over all pixels of the gradient of the activation's input.
template <typename T, Activation kActivation, typename Window>
struct DirectBiasGradient {
  using Total = Sum<float>;
  static constexpr int kResidentBlocks = std::is_same_v<T, float> ? 2 : 3;  // f32 has the exact functions
  static constexpr bool kOneRowAtOnce = true;

  DirectConvolution<T, Window> convolution;
  const T* dy;
  std::int64_t pixels, outputs;
  float* dbias;

  HEADRACE_HOST_DEVICE std::int64_t rows() const { return pixels; }
  template <int kWidth>
  HEADRACE_HOST_DEVICE auto begin(std::int64_t column) const {
    return convolution.template begin<kWidth>(column);
  }
  template <int kWidth, typename Own>
  HEADRACE_HOST_DEVICE void add(const Own& own, Total (&totals)[kWidth], std::int64_t row,
                                std::int64_t column) const {
    const Pack<T, kWidth> gradient = load_pack<kWidth>(dy + row * outputs + column);
    float sums[kWidth];
    convolution.template sum<kWidth>(own, row, sums);
    for (int k = 0; k < kWidth; ++k) {
      totals[k].value += activation_gradient<T>(kActivation, sums[k], value_of(gradient.values[k]));
    }
  }
  HEADRACE_HOST_DEVICE void finish(std::int64_t column, const Sum<double>& total) const {
    dbias[column] = static_cast<float>(total.value);
  }
};

// `y` is the output or its gradient.
template <typename T, typename Window>
DirectConvolution<T, Window> direct_convolution(const TensorView& x, const TensorView& weights,
                                                const TensorView& bias, const TensorView& y,
                                                const ConvOptions& options) {
  const bool half = weights.dtype == DType::kBF16;
  const std::int64_t line = x.shape[2] * x.shape[3];
  return {.out = {y.shape[1], y.shape[2]},
          .in_image = x.shape[1] * line,
          .in_line = static_cast<int>(line),
          .stride = options.stride.height,
          .x = x.as<T>(),
          .weights = half ? nullptr : weights.as<float>(),
          .half_weights = half ? weights.as<BFloat16>() : nullptr,
          .bias = bias.as<float>()};
}

// Returns whether the tensor cores compute it: in bf16, if 31 bits index it and `y` fits packs.
inline bool computes_in_tiles(const TensorView& x, const TensorView& y) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max() - WarpGrid::kWarps * kWarpLanes;
  return y.dtype == DType::kBF16 && packs_fit(kTileColumns, y) && y.elements() > 0 && x.elements() < kMax &&
         y.elements() / y.shape[3] < kMax;
}

template <typename Window, int kTiles>
DirectTiles<Window, kTiles> direct_tiles(const TensorView& x, const TensorView& weights, const TensorView& bias,
                                         const TensorView& y, const ConvOptions& options) {
  const bool half = weights.dtype == DType::kBF16;
  const auto line = static_cast<std::uint32_t>(x.shape[2] * x.shape[3]);
  const auto image = static_cast<std::uint32_t>(x.shape[1]) * line,
             stride = static_cast<std::uint32_t>(options.stride.height);
  return {.corners = WindowCorners(static_cast<int>(y.shape[1]), static_cast<int>(y.shape[2]), image,
                                   line * stride, stride * Window::kChannels),
          .in_line = static_cast<int>(line),
          .x = x.as<BFloat16>(),
          .weights = half ? nullptr : weights.as<float>(),
          .half_weights = half ? weights.as<BFloat16>() : nullptr,
          .bias = bias.as<float>(),
          .pixels = static_cast<std::int32_t>(y.elements() / y.shape[3])};
}

// Calls function(integral_constant) with the tiles of eight outputs that a warp takes.
template <typename Function>
void by_output_tiles(std::int64_t outputs, const Function& function) {
  if (outputs % (3 * kTileColumns) == 0) return function(std::integral_constant<int, 3>{});
  function(std::integral_constant<int, 1>{});
}

// Calls function(type, activation, window). REQUIRES: computes_directly().
template <typename Function>
void by_direct_convolution(const TensorView& y, const TensorView& weights, Activation activation,
                           const Function& function) {
  by_type(y.dtype, [&](auto type) {
    by_fused_activation(activation, [&](auto which) {
      by_conv_window(weights.shape, [&](auto window) { function(type, which, window); });
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::convolve_directly(Stream& stream, const kernel::ConvForward& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    by_direct_convolution(of.y, of.weights, of.activation, [&](auto type, auto which, auto window) {
      using T = decltype(type);
      using Window = decltype(window);
      const std::int64_t outputs = of.y.shape[3];
      if constexpr (std::is_same_v<T, BFloat16>) {
        if (computes_in_tiles(of.x, of.y)) {
          return by_output_tiles(outputs, [&](auto tiles) {
            launch.tiles(DirectForwardTiles<which(), Window, tiles()>{
                direct_tiles<Window, tiles()>(of.x, of.weights, of.bias, of.y, of.options), of.y.as<BFloat16>(),
                static_cast<std::int32_t>(outputs)});
          });
        }
      }
      const DirectForward<T, which(), Window> work{
          direct_convolution<T, Window>(of.x, of.weights, of.bias, of.y, of.options), of.y.as<T>(), outputs};
      constexpr int kWidth = std::is_same_v<T, float> ? kPackWidth<T> : 1;
      submit_columns<kWidth>(launch, work, of.y.elements() / outputs, outputs, of.y);
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::ConvBiasBackward& of) {
  check_recomputed(of, computes_directly(of.dy.dtype, of.weights.shape, of.options));
  launches_.submit(stream, name_of(of), reduction_scratch_bytes(of.dy), [=](auto& launch, void* scratch) {
    by_direct_convolution(of.dy, of.weights, of.activation, [&](auto type, auto which, auto window) {
      using T = decltype(type);
      using Window = decltype(window);
      const std::int64_t outputs = of.dy.shape[3], pixels = of.dy.elements() / outputs;
      if constexpr (std::is_same_v<T, BFloat16>) {
        if (computes_in_tiles(of.x, of.dy)) {
          return by_output_tiles(outputs, [&](auto tiles) {
            launch.reduce_tiles(
                DirectBiasGradientTiles<which(), Window, tiles()>{
                    direct_tiles<Window, tiles()>(of.x, of.weights, of.bias, of.dy, of.options),
                    of.dy.as<BFloat16>(), static_cast<std::int32_t>(outputs), of.dbias.as<float>()},
                scratch);
          });
        }
      }
      using Work = DirectBiasGradient<T, which(), Window>;
      const Work work{direct_convolution<T, Window>(of.x, of.weights, of.bias, of.dy, of.options), of.dy.as<T>(),
                      pixels, outputs, of.dbias.as<float>()};
      constexpr int kWidth = std::is_same_v<T, float> ? kNarrowWidth : 1;
      by_width<kWidth>(packs_fit(kWidth, of.dy), [&](auto width) {
        launch.template reduce<width()>(work, column_grid(pixels, outputs, width(), max_reducing_blocks<Work>()),
                                        scratch);
      });
    });
  });
}

}  // namespace headrace::cuda
