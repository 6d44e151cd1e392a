// The functions of one element of GpuKernels. Private to the CUDA backend.
#pragma once

#include <cmath>

#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/element.h"
#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/pooling_work.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// Returns words 4 `block` to 4 `block` + 3 of Philox({.seed = seed, .epoch = low 32 bits of step, .record = row,
// .operation = layer}).
HEADRACE_HOST_DEVICE constexpr Philox::Block dropout_words(std::uint64_t seed, std::uint64_t step,
                                                           std::uint64_t row, std::uint32_t layer,
                                                           std::uint32_t block) {
  return Philox::round10({block, static_cast<std::uint32_t>(row),
                          static_cast<std::uint32_t>((row >> 32) << 16) | layer, static_cast<std::uint32_t>(step)},
                         {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

template <typename T>
struct Dropout {
  const T* x;
  T* y;
  std::int64_t columns;  // elements of an example
  std::uint64_t seed;
  std::uint32_t layer;
  std::uint32_t threshold;
  float scale;
  const StepScalars* scalars;

  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(Nothing, std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * columns + column;
    const std::uint64_t record = scalars->first_row + static_cast<std::uint64_t>(row);
    Pack<T, kWidth> pack = load_pack<kWidth>(x + at);
    Philox::Block words{};
    for (int k = 0; k < kWidth; ++k) {
      const std::int64_t element = column + k;
      if (k % 4 == 0) {
        words = dropout_words(seed, scalars->step, record, layer, static_cast<std::uint32_t>(element / 4));
      }
      // Packs begin at multiples of 4, so the word's index is known at compile time; for single elements it is
      // not.
      const std::uint32_t word =
          kWidth == 1 ? words[static_cast<std::size_t>(element % 4)] : words[static_cast<std::size_t>(k % 4)];
      pack.values[k] = element_of<T>(word >= threshold ? value_of(pack.values[k]) * scale : 0.0F);
    }
    store_pack(y + at, pack);
  }
};

template <typename Launcher>
void submit_dropout(Launcher& launch, const TensorView& x, float rate, std::uint64_t seed, int layer,
                    const StepScalars* scalars, const TensorView& y) {
  const std::int64_t rows = x.shape[0], columns = x.elements() / rows;
  by_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    Dropout<T> work{};
    work.x = x.as<T>();
    work.y = y.as<T>();
    work.columns = columns;
    work.seed = seed;
    work.layer = static_cast<std::uint32_t>(layer);
    work.threshold = static_cast<std::uint32_t>(std::llround(static_cast<double>(rate) * 0x1p32));
    work.scale = 1.0F / (1.0F - rate);
    work.scalars = scalars;
    constexpr int kWidth = kPackWidth<T>;
    by_width<kWidth>(columns % kWidth == 0 && packs_fit(kWidth, x, y), [&](auto width) {
      launch.template columns<width()>(work, column_grid(rows, columns, width()));
    });
  });
}

// A row is a pixel of the result.
template <typename T>
struct ShiftImages {
  PixelGrid grid;
  std::int64_t channels;
  ImageShift shift;
  const T* x;
  T* y;

  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(Nothing, std::int64_t row, std::int64_t column) const {
    const Pixel to = grid.pixel(row);
    const int line = reflected(to.y + shift.down, grid.height);
    const int place = reflected((shift.mirror ? grid.width - 1 - to.x : to.x) + shift.right, grid.width);
    const std::int64_t from = (to.image * grid.height + line) * grid.width + place;
    store_pack(y + row * channels + column, load_pack<kWidth>(x + from * channels + column));
  }
};

template <typename Launcher>
void submit_shift_images(Launcher& launch, const TensorView& x, const ImageShift& shift, const TensorView& y) {
  by_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    const std::int64_t channels = x.shape[3];
    const ShiftImages<T> work{{x.shape[1], x.shape[2]}, channels, shift, x.as<T>(), y.as<T>()};
    constexpr int kWidth = kPackWidth<T>;
    by_width<kWidth>(channels % kWidth == 0 && packs_fit(kWidth, x, y), [&](auto width) {
      launch.template columns<width()>(work, column_grid(x.elements() / channels, channels, width()));
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::convert(Stream& stream, const TensorView& from, const TensorView& to) {
  check::convert("convert", from, to);
  launches_.submit(stream, "convert", [=](auto& launch) { submit_convert(launch, from, to); });
}

template <typename Launches>
void GpuKernels<Launches>::activation_forward(Stream& stream, Activation activation, const TensorView& x,
                                              const TensorView& y) {
  check::elementwise("activation_forward", activation);
  for (const TensorView& view : {x, y}) check::same("activation_forward", view, x, kHalf);
  launches_.submit(stream, "activation_forward",
                   [=](auto& launch) { submit_activation_forward(launch, activation, x, y); });
}

template <typename Launches>
void GpuKernels<Launches>::activation_backward(Stream& stream, Activation activation, const TensorView& x,
                                               const TensorView& dy, const TensorView& dx) {
  check::elementwise("activation_backward", activation);
  for (const TensorView& view : {x, dy, dx}) check::same("activation_backward", view, x, kHalf);
  launches_.submit(stream, "activation_backward",
                   [=](auto& launch) { submit_activation_backward(launch, activation, x, dy, dx); });
}

template <typename Launches>
void GpuKernels<Launches>::add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) {
  for (const TensorView& view : {a, b, sum}) check::same("add", view, a, kHalf);
  launches_.submit(stream, "add", [=](auto& launch) { submit_add(launch, a, b, sum); });
}

template <typename Launches>
void GpuKernels<Launches>::accumulate(Stream& stream, const TensorView& x, const TensorView& into) {
  for (const TensorView& view : {x, into}) check::same("accumulate", view, x, kHalf);
  launches_.submit(stream, "accumulate", [=](auto& launch) { submit_add(launch, into, x, into); });
}

template <typename Launches>
void GpuKernels<Launches>::sum_tree(Stream& stream, std::span<const TensorView> parts, const TensorView& sum) {
  check::sum_tree("sum_tree", parts, sum);
  SumTree work{.count = static_cast<int>(parts.size()), .sum = sum.as<float>()};
  for (std::size_t i = 0; i < parts.size(); ++i) work.parts[i] = parts[i].as<float>();
  launches_.submit(stream, "sum_tree",
                   [=, count = sum.elements()](auto& launch) { launch.template flat<1>(work, count); });
}

template <typename Launches>
void GpuKernels<Launches>::scale(Stream& stream, const TensorView& x, const Factor& factor, const TensorView& y) {
  check::scale("scale", x, y, kHalf);
  launches_.submit(stream, "scale", [=](auto& launch) { submit_scale(launch, x, factor, y); });
}

template <typename Launches>
void GpuKernels<Launches>::dropout(Stream& stream, const TensorView& x, float rate, std::uint64_t seed, int layer,
                                   const StepScalars* scalars, const TensorView& y) {
  check::dropout("dropout", rate, layer);
  for (const TensorView& view : {x, y}) check::same("dropout", view, x, kHalf);
  launches_.submit(stream, "dropout",
                   [=](auto& launch) { submit_dropout(launch, x, rate, seed, layer, scalars, y); });
}

template <typename Launches>
void GpuKernels<Launches>::shift_images(Stream& stream, const TensorView& x, const ImageShift& shift,
                                        const TensorView& y) {
  check::shift("shift_images", x, shift, y, kHalf);
  launches_.submit(stream, "shift_images", [=](auto& launch) { submit_shift_images(launch, x, shift, y); });
}

// Biases of GpuKernels, added to products that no library fused with them, and their gradients.

// y = activation(y + bias), in place.
template <typename T, Activation kActivation>
struct BiasActivation {
  T* y;
  const float* bias;
  std::int64_t columns;

  template <int kWidth>
  struct Own {
    float bias[kWidth];
  };
  template <int kWidth>
  HEADRACE_HOST_DEVICE Own<kWidth> begin(std::int64_t column) const {
    Own<kWidth> own;
    for (int k = 0; k < kWidth; ++k) own.bias[k] = bias[column + k];
    return own;
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(const Own<kWidth>& own, std::int64_t row, std::int64_t column) const {
    T* at = y + row * columns + column;
    Pack<T, kWidth> pack = load_pack<kWidth>(at);
    for (int k = 0; k < kWidth; ++k) {
      pack.values[k] = element_of<T>(activated<T>(kActivation, value_of(pack.values[k]) + own.bias[k]));
    }
    store_pack(at, pack);
  }
};

template <typename Function>
void by_type_and_fused(DType dtype, Activation activation, const Function& function) {
  by_type(dtype, [&](auto type) { by_fused_activation(activation, [&](auto which) { function(type, which); }); });
}

// `bias` may be undefined. Does nothing without a bias and an activation.
template <typename Launcher>
void submit_bias_activation(Launcher& launch, const TensorView& y, const TensorView& bias, Activation activation) {
  if (!bias.defined()) {
    if (activation != Activation::kNone) submit_activation_forward(launch, activation, y, y);
    return;
  }
  by_type_and_fused(y.dtype, activation, [&](auto type, auto which) {
    using T = decltype(type);
    const std::int64_t columns = y.shape.back();
    const BiasActivation<T, which()> work{y.as<T>(), bias.as<float>(), columns};
    constexpr int kWidth = kPackWidth<T>;
    by_width<kWidth>(columns % kWidth == 0 && packs_fit(kWidth, y), [&](auto width) {
      launch.template columns<width()>(work, column_grid(y.elements() / columns, columns, width()));
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::bias_activation(Stream& stream, const char* kernel, const TensorView& y,
                                           const TensorView& bias, Activation activation) {
  launches_.submit(stream, kernel, [=](auto& launch) { submit_bias_activation(launch, y, bias, activation); });
}

template <typename Launches>
void GpuKernels<Launches>::bias_gradient(Stream& stream, const char* kernel, const TensorView& dy,
                                         const TensorView& dbias) {
  if (!dbias.defined()) return;
  launches_.submit(stream, kernel, reduction_scratch_bytes(dy),
                   [=](auto& launch, void* scratch) { submit_column_sums(launch, dy, dbias, scratch); });
}

}  // namespace headrace::cuda
