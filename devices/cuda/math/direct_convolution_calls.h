// Convolutions of GpuKernels that no library computes. Private to the CUDA backend.
#pragma once

#include <limits>

#include "headrace/devices/cuda/math/activation_math.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/direct_convolution.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/pooling_work.h"
#include "headrace/devices/cuda/math/warp_tiles.h"

namespace headrace::cuda {

// Direct convolutions in bf16 as work for the lanes of a warp: rows are pixels, the tensor cores multiply
// windows with weights.

// Where each pixel's window begins in x, which holds fewer than 2^31 elements, as do the pixels. Arithmetic is
// modulo 2^32.
class WindowCorners {
 public:
  WindowCorners(int out_height, int out_width, std::uint32_t image, std::uint32_t line, std::uint32_t step)
      : by_width_(out_width),
        by_height_(out_height),
        step_(step),
        line_(line - static_cast<std::uint32_t>(out_width) * step),
        image_(image - static_cast<std::uint32_t>(out_height) * line) {}

  HEADRACE_HOST_DEVICE std::uint32_t corner(std::uint32_t pixel) const {
    const std::uint32_t line = by_width_.quotient(pixel);
    return pixel * step_ + line * line_ + by_height_.quotient(line) * image_;
  }

 private:
  SmallDivisor by_width_, by_height_;
  std::uint32_t step_, line_, image_;  // to the next pixel; in addition at each line's and image's end
};

// Values of a window lie along the depth, in pairs that do not cross lines: pair 4 s + q is that of a lane's part
// s. Three more values are ones, whose weights are the bias in three parts.
template <typename Window>
struct WindowPair {
  static constexpr int kLinePairs = (Window::kLine + 1) / 2, kPairs = Window::kHeight * kLinePairs;
  static_assert(2 * (kPairs + 2) == kTileDepth, "two pairs are of the bias");

  HEADRACE_HOST_DEVICE explicit WindowPair(int pair)
      : line(pair / kLinePairs), at(2 * (pair % kLinePairs)), bias(pair - kPairs) {}

  HEADRACE_HOST_DEVICE bool has(int which) const { return line < Window::kHeight && at + which < Window::kLine; }
  HEADRACE_HOST_DEVICE int value(int which) const { return line * Window::kLine + at + which; }

  int line, at;
  int bias;  // the part of the bias, from 0 on; below 0: of the window
};

template <typename Window, int kTiles>
struct DirectTiles {
  static constexpr int kWidth = kTiles * kTileColumns;

  WindowCorners corners;
  int in_line;
  const BFloat16* x;
  const float* weights;          // or
  const BFloat16* half_weights;  // null: use `weights`
  const float* bias;             // null: 0
  std::int32_t pixels;           // at least 1

  // A lane's constants.
  struct Own {
    RightTile weights[kTiles];
    std::uint32_t offsets[2];  // of its pairs in a window
    bool has[2][2];
  };
  HEADRACE_HOST_DEVICE Own begin(std::int64_t column, int lane) const {
    Own own{};
    HEADRACE_UNROLLED(2)
    for (int s = 0; s < 2; ++s) {
      const WindowPair<Window> pair(4 * s + lane % 4);
      own.offsets[s] = static_cast<std::uint32_t>(pair.line * in_line + pair.at);
      for (int i = 0; i < 2; ++i) own.has[s][i] = pair.has(i);
      for (int t = 0; t < kTiles; ++t) {
        const std::int64_t output = column + t * kTileColumns + lane / 4;
        own.weights[t].pairs[s] = pair.bias >= 0 ? bias_pair(output, pair.bias > 0) : weight_pair(output, pair);
      }
    }
    return own;
  }

  // Loads windows of the pixels [row, row + 16); beyond the last one, that one's again. Where a window
  // has no value the tile has a one, whose weight is 0 or of the bias.
  HEADRACE_HOST_DEVICE LeftTile windows(const Own& own, std::int64_t row, int lane) const {
    LeftTile tile;
    for (int h = 0; h < 2; ++h) {
      const auto pixel = static_cast<std::uint32_t>(row) + static_cast<std::uint32_t>(lane / 4 + 8 * h);
      const auto end = static_cast<std::uint32_t>(pixels);
      const std::uint32_t corner = corners.corner(pixel < end ? pixel : end - 1);
      for (int s = 0; s < 2; ++s) {
        const BFloat16* pair = x + (corner + own.offsets[s]);
        constexpr BFloat16 kOne{0x3F80};
        BFloat16 first = kOne, second = kOne;
        if (own.has[s][0]) first = pair[0];
        if (own.has[s][1]) second = pair[1];
        tile.pairs[h + 2 * s] = half_pair(first, second);
      }
    }
    return tile;
  }

 private:
  HEADRACE_HOST_DEVICE std::uint32_t weight_pair(std::int64_t output, const WindowPair<Window>& pair) const {
    BFloat16 first{}, second{};
    if (pair.has(0)) first = weight(output * Window::kValues + pair.value(0));
    if (pair.has(1)) second = weight(output * Window::kValues + pair.value(1));
    return half_pair(first, second);
  }
  // Three parts add up to the bias: each has the leading bits of what those before it leave.
  HEADRACE_HOST_DEVICE std::uint32_t bias_pair(std::int64_t output, bool last) const {
    const float all = bias != nullptr ? bias[output] : 0.0F;
    const BFloat16 first = element_of<BFloat16>(all);
    const float rest = all - value_of(first);
    const BFloat16 second = element_of<BFloat16>(rest);
    return last ? half_pair(element_of<BFloat16>(rest - value_of(second)), {}) : half_pair(first, second);
  }
  HEADRACE_HOST_DEVICE BFloat16 weight(std::int64_t at) const {
    return half_weights != nullptr ? half_weights[at] : element_of<BFloat16>(weights[at]);
  }
};

// A warp collects the activations of a group of rows in memory that its lanes share, then writes packs of them.
template <Activation kActivation, typename Window, int kTiles>
struct DirectForwardTiles {
  static constexpr int kRowTiles = 1, kRows = kRowTiles * kTileRows, kResidentBlocks = 4;
  static constexpr int kPackPairs = kTileColumns / 2, kLinePairs = kTiles * kPackPairs;
  static constexpr int kSharedPairs = kRows * kLinePairs;  // of a warp

  DirectTiles<Window, kTiles> convolution;
  BFloat16* y;  // aligned for packs
  std::int32_t outputs;

  // `row` is the tile's first row in the group.
  HEADRACE_HOST_DEVICE void collect(const SumTile& sums, int row, int tile, int lane,
                                    std::uint32_t* shared) const {
    for (int h = 0; h < 2; ++h) {
      const BFloat16 first = value(sums.values[2 * h]), second = value(sums.values[2 * h + 1]);
      shared[(row + lane / 4 + 8 * h) * kLinePairs + tile * kPackPairs + lane % 4] = half_pair(first, second);
    }
  }
  HEADRACE_HOST_DEVICE void write(std::int64_t row, std::int64_t column, int lane,
                                  const std::uint32_t* shared) const {
    const auto first = static_cast<std::int32_t>(row);
    constexpr int kPacks = kRows * kTiles, kRounds = (kPacks + kWarpLanes - 1) / kWarpLanes;
    HEADRACE_UNROLLED(kRounds)
    for (int i = 0; i < kRounds; ++i) {
      const int pack = lane + i * kWarpLanes, to = first + pack / kTiles;
      if (pack >= kPacks || to >= convolution.pixels) return;
      BFloat16* place = y + std::int64_t{to} * outputs + (column + pack % kTiles * kTileColumns);
      store_pack(reinterpret_cast<std::uint32_t*>(place), load_pack<kPackPairs>(shared + pack * kPackPairs));
    }
  }

 private:
  HEADRACE_HOST_DEVICE static BFloat16 value(float x) {
    return element_of<BFloat16>(activated<BFloat16>(kActivation, x));
  }
};

// The sum over all pixels of the gradient of the activation's input.
template <Activation kActivation, typename Window, int kTiles>
struct DirectBiasGradientTiles {
  using Total = Sum<float>;
  static constexpr int kRowTiles = 1, kRows = kTileRows, kResidentBlocks = 4;

  DirectTiles<Window, kTiles> convolution;
  const BFloat16* dy;  // aligned for pairs
  std::int32_t outputs;
  float* dbias;

  // A lane's gradients of the results of a group of rows; 0 beyond the last pixel.
  struct Gradients {
    std::uint32_t pairs[kTiles][2];
  };
  HEADRACE_HOST_DEVICE Gradients gradients(std::int64_t row, std::int64_t column, int lane) const {
    Gradients result{};
    for (int h = 0; h < 2; ++h) {
      const std::int32_t pixel = static_cast<std::int32_t>(row) + lane / 4 + 8 * h;
      if (pixel >= convolution.pixels) continue;
      const BFloat16* from = dy + std::int64_t{pixel} * outputs + (column + 2 * (lane % 4));
      for (int t = 0; t < kTiles; ++t) {
        result.pairs[t][h] = *reinterpret_cast<const std::uint32_t*>(from + t * kTileColumns);
      }
    }
    return result;
  }
  HEADRACE_HOST_DEVICE static void add(const SumTile& sums, const std::uint32_t (&pairs)[2], Total (&totals)[2]) {
    for (int h = 0; h < 2; ++h) {
      for (int j = 0; j < 2; ++j) {
        const float gradient = value_of(half_of_pair(pairs[h], j));
        totals[j].value += activation_gradient<BFloat16>(kActivation, sums.values[2 * h + j], gradient);
      }
    }
  }
  HEADRACE_HOST_DEVICE void finish(std::int64_t column, const Sum<double>& total) const {
    dbias[column] = static_cast<float>(total.value);
  }
};

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
    by_direct_convolution(of.y, of.weights, of.activation, [&]<typename T>(T, auto which, auto window) {
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
    by_direct_convolution(of.dy, of.weights, of.activation, [&]<typename T>(T, auto which, auto window) {
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
