// The functions of one element of GpuKernels. Private to the CUDA backend.
#pragma once

#include <cmath>

#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/sizes.h"
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

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Convert& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) { submit_convert(launch, of.from, of.to); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::ActivationForward& of) {
  launches_.submit(stream, name_of(of),
                   [=](auto& launch) { submit_activation_forward(launch, of.activation, of.x, of.y); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::ActivationBackward& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    by_type_and_activation(of.x.dtype, of.activation, [&]<typename T>(T, auto which) {
      const ActivationBackward<T, which()> work{of.x.as<T>(), of.dy.as<T>(), of.dx.as<T>()};
      submit_flat<kPackWidth<T>>(launch, work, of.x.elements(), of.x, of.dy, of.dx);
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Add& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) { submit_add(launch, of.a, of.b, of.sum); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Accumulate& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) { submit_add(launch, of.into, of.x, of.into); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::SumTree& of) {
  SumTree work{.count = static_cast<int>(of.parts.size()), .sum = of.sum.as<float>()};
  for (std::size_t i = 0; i < of.parts.size(); ++i) work.parts[i] = of.parts[i].as<float>();
  launches_.submit(stream, name_of(of),
                   [=, count = of.sum.elements()](auto& launch) { launch.template flat<1>(work, count); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Scale& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const auto from = [&](auto source) {
      by_type(of.y.dtype, [&](auto target) {
        using From = decltype(source);
        using To = decltype(target);
        const Scale<From, To> work{of.x.as<From>(), of.factor, of.y.as<To>()};
        submit_flat<kPackWidth<To>>(launch, work, of.x.elements(), of.x, of.y);
      });
    };
    if (of.x.dtype == DType::kU8) return from(std::uint8_t{});
    if (of.x.dtype == DType::kI64) return from(std::int64_t{});
    by_type(of.x.dtype, from);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Dropout& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const std::int64_t rows = of.x.shape[0], columns = of.x.elements() / rows;
    by_type(of.x.dtype, [&]<typename T>(T) {
      const Dropout<T> work{of.x.as<T>(),
                            of.y.as<T>(),
                            columns,
                            of.seed,
                            static_cast<std::uint32_t>(of.layer),
                            static_cast<std::uint32_t>(std::llround(static_cast<double>(of.rate) * 0x1p32)),
                            1.0F / (1.0F - of.rate),
                            of.scalars};
      submit_columns<kPackWidth<T>>(launch, work, rows, columns, of.x, of.y);
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::ShiftImages& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    by_type(of.x.dtype, [&]<typename T>(T) {
      const std::int64_t channels = of.x.shape[3];
      const ShiftImages<T> work{{of.x.shape[1], of.x.shape[2]}, channels, of.shift, of.x.as<T>(), of.y.as<T>()};
      submit_columns<kPackWidth<T>>(launch, work, of.x.elements() / channels, channels, of.x, of.y);
    });
  });
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

// `bias` may be undefined. Does nothing without a bias and an activation.
template <typename Launcher>
void submit_bias_activation(Launcher& launch, const TensorView& y, const TensorView& bias, Activation activation) {
  if (!bias.defined()) {
    if (activation != Activation::kNone) submit_activation_forward(launch, activation, y, y);
    return;
  }
  by_type(y.dtype, [&]<typename T>(T) {
    by_fused_activation(activation, [&](auto which) {
      const std::int64_t columns = y.shape.back();
      const BiasActivation<T, which()> work{y.as<T>(), bias.as<float>(), columns};
      submit_columns<kPackWidth<T>>(launch, work, y.elements() / columns, columns, y);
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
