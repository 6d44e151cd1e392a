// The elementwise functions of the CPU's table, and those that join elements.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "headrace/devices/base/simd.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

// Names the random words of one row: element e gets word e of Philox({.seed = seed, .epoch = low 32 bits of
// step, .record = row, .operation = layer}).
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint16_t layer = 0;
  std::uint64_t first_row = 0;  // the global number of the first row
};

constexpr std::int64_t kPhiloxLanes = 16;          // Philox blocks at once
constexpr std::int64_t kWords = 4 * kPhiloxLanes;  // random words that they make

// The upper three words of the counter and the key of one row (see Philox in base/rng.h).
struct RowCounter {
  std::uint32_t counter1, counter2, counter3, key0, key1;
};

// words[j * kPhiloxLanes + i] = word j of block `first` + i: Philox::round10 over many blocks.
HEADRACE_INLINE void philox_blocks(const RowCounter& row, std::uint32_t first, std::uint32_t* __restrict words) {
  for (std::uint32_t lane = 0; lane < kPhiloxLanes; ++lane) {
    std::uint32_t c0 = first + lane, c1 = row.counter1, c2 = row.counter2, c3 = row.counter3;
    std::uint32_t k0 = row.key0, k1 = row.key1;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * c0;
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c2;
      c0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ k0;
      c1 = static_cast<std::uint32_t>(b);
      c2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ k1;
      c3 = static_cast<std::uint32_t>(a);
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    words[4 * lane] = c0;
    words[4 * lane + 1] = c1;
    words[4 * lane + 2] = c2;
    words[4 * lane + 3] = c3;
  }
}

template <typename T>
HEADRACE_INLINE void drop(const RowCounter& counter, std::uint32_t threshold, float scale, const T* x, T* y,
                          std::int64_t elements) {
  std::uint32_t words[kWords];
  for (std::int64_t at = 0; at < elements; at += kWords) {
    philox_blocks(counter, static_cast<std::uint32_t>(at / 4), words);
    const std::int64_t count = elements - at < kWords ? elements - at : kWords;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      y[at + i] = element<T>(words[i] >= threshold ? value(x[at + i]) * scale : 0.0F);
    }
  }
}

HEADRACE_SIMD_MATH void drop_row(const RowCounter& counter, std::uint32_t threshold, float scale, const float* x,
                                 float* y, std::int64_t elements) {
  drop(counter, threshold, scale, x, y, elements);
}
HEADRACE_SIMD_MATH void drop_row(const RowCounter& counter, std::uint32_t threshold, float scale,
                                 const BFloat16* x, BFloat16* y, std::int64_t elements) {
  drop(counter, threshold, scale, x, y, elements);
}

// y = x / (1 - rate) if the word is at least rate * 2^32, else 0. 0 <= rate < 1; y may be x. T is float or
// BFloat16.
template <typename T>
void dropout(const DropoutKey& key, float rate, const T* x, T* y, std::int64_t rows, std::int64_t elements) {
  const auto threshold = static_cast<std::uint32_t>(std::llround(static_cast<double>(rate) * 0x1p32));
  const float scale = 1.0F / (1.0F - rate);
  parallel_ranges(rows, row_grain(4 * elements), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::uint64_t record = key.first_row + static_cast<std::uint64_t>(row);
      const RowCounter counter{.counter1 = static_cast<std::uint32_t>(record),
                               .counter2 = static_cast<std::uint32_t>((record >> 32) << 16) | key.layer,
                               .counter3 = static_cast<std::uint32_t>(key.step),
                               .key0 = static_cast<std::uint32_t>(key.seed),
                               .key1 = static_cast<std::uint32_t>(key.seed >> 32)};
      drop_row(counter, threshold, scale, x + row * elements, y + row * elements, elements);
    }
  });
}

void submit_add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) {
  submit(stream,
         [=] { with_type(a, [&]<typename T>(T) { cpu::add(a.as<T>(), b.as<T>(), sum.as<T>(), a.elements()); }); });
}

// Makes shifted and mirrored copies of images.
struct ImageGeometry {
  std::int64_t images = 0, height = 0, width = 0, channels = 0;
};

template <typename T>
void shift_row(const T* x, std::int64_t right, bool mirror, std::int64_t width, std::int64_t channels, T* y) {
  for (std::int64_t column = 0; column < width; ++column) {
    const std::int64_t from = reflected((mirror ? width - 1 - column : column) + right, width);
    std::copy_n(x + from * channels, channels, y + column * channels);
  }
}

// T is float or BFloat16.
template <typename T>
void shift_images(const ImageGeometry& geometry, const T* x, const ImageShift& shift, T* y) {
  const std::int64_t row = geometry.width * geometry.channels;
  parallel_ranges(geometry.images * geometry.height, row_grain(row), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t image = at / geometry.height;
      const std::int64_t from = reflected(at % geometry.height + shift.down, geometry.height);
      shift_row(x + (image * geometry.height + from) * row, shift.right, shift.mirror, geometry.width,
                geometry.channels, y + at * row);
    }
  });
}

}  // namespace

void CpuKernels::run(Stream& stream, const kernel::AddBias& of) {
  submit(stream, [=] {
    with_type(of.y, [&]<typename T>(T) {
      const std::int64_t columns = of.y.shape.back();
      cpu::add_bias(of.activation, f32(of.bias), of.y.as<T>(), of.y.elements() / columns, columns);
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::Convert& of) {
  submit(stream, [=] {
    if (of.from.dtype == of.to.dtype) {
      std::memcpy(of.to.data, of.from.data, of.from.bytes());
    } else if (of.to.dtype == DType::kBF16) {
      cpu::to_bf16(f32(of.from), of.to.as<BFloat16>(), of.from.elements());
    } else {
      cpu::from_bf16(of.from.as<BFloat16>(), f32(of.to), of.from.elements());
    }
  });
}

void CpuKernels::run(Stream& stream, const kernel::ActivationForward& of) {
  submit(stream, [=] {
    with_type(of.x,
              [&]<typename T>(T) { cpu::activate(of.activation, of.x.as<T>(), of.y.as<T>(), of.x.elements()); });
  });
}

void CpuKernels::run(Stream& stream, const kernel::ActivationBackward& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::activate_backward(of.activation, of.x.as<T>(), of.dy.as<T>(), of.dx.as<T>(), of.x.elements());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::Add& of) { submit_add(stream, of.a, of.b, of.sum); }

void CpuKernels::run(Stream& stream, const kernel::Accumulate& of) { submit_add(stream, of.into, of.x, of.into); }

void CpuKernels::run(Stream& stream, const kernel::SumTree& of) {
  std::vector<float*> vectors;
  for (const TensorView& part : of.parts) vectors.push_back(part.as<float>());
  submit(stream,
         [=, vectors = std::move(vectors)] { cpu::sum_tree(vectors, of.sum.as<float>(), of.sum.elements()); });
}

void CpuKernels::run(Stream& stream, const kernel::Scale& of) {
  submit(stream, [=] {
    const float by = of.factor.stored == nullptr ? of.factor.value : *of.factor.stored;
    with_type(of.y, [&]<typename Out>(Out) {
      if (of.x.dtype == DType::kU8)
        return cpu::scale(of.x.as<std::uint8_t>(), by, of.y.as<Out>(), of.x.elements());
      if (of.x.dtype == DType::kI64)
        return cpu::scale(of.x.as<std::int64_t>(), by, of.y.as<Out>(), of.x.elements());
      with_type(of.x, [&]<typename In>(In) { cpu::scale(of.x.as<In>(), by, of.y.as<Out>(), of.x.elements()); });
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::Dropout& of) {
  submit(stream, [=] {
    const DropoutKey key{.seed = of.seed,
                         .step = of.scalars->step,
                         .layer = static_cast<std::uint16_t>(of.layer),
                         .first_row = of.scalars->first_row};
    with_type(of.x, [&]<typename T>(T) {
      cpu::dropout(key, of.rate, of.x.as<T>(), of.y.as<T>(), of.x.shape[0], of.x.elements() / of.x.shape[0]);
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::CopyColumns& of) {
  const std::size_t size = size_of(of.from.dtype), bytes = static_cast<std::size_t>(of.columns) * size;
  const auto step = [size](const TensorView& view) { return static_cast<std::size_t>(view.shape[1]) * size; };
  submit(stream, [=] {
    const auto* source = of.from.as<const std::byte>() + static_cast<std::size_t>(of.from_column) * size;
    auto* target = of.to.as<std::byte>() + static_cast<std::size_t>(of.to_column) * size;
    parallel_ranges(of.from.shape[0], row_grain(of.columns), [&](std::int64_t begin, std::int64_t end) {
      for (auto row = static_cast<std::size_t>(begin); row < static_cast<std::size_t>(end); ++row) {
        std::memcpy(target + row * step(of.to), source + row * step(of.from), bytes);
      }
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::ShiftImages& of) {
  submit(stream, [=] {
    const ImageGeometry geometry{of.x.shape[0], of.x.shape[1], of.x.shape[2], of.x.shape[3]};
    with_type(of.x, [&]<typename T>(T) { cpu::shift_images(geometry, of.x.as<T>(), of.shift, of.y.as<T>()); });
  });
}

}  // namespace headrace::cpu
