// Dropout as work for threads. Private to the CUDA backend.
#pragma once

#include <cmath>

#include "headrace/devices/base/rng.h"
#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/math/element.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// Words 4 `block` to 4 `block` + 3 of Philox({.seed = seed, .epoch = low 32 bits of step, .record = row,
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
      // Packs begin at multiples of 4, so the word's number is known when compiling; alone it is not.
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

}  // namespace headrace::cuda
