// Of the CPU's table: what acts on elements one by one, or joins them.
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/cpu_submission.h"
#include "headrace/devices/cpu/math/dropout.h"
#include "headrace/devices/cpu/math/element.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/cpu/math/sigmoidal.h"
#include "headrace/devices/cpu/math/sum_tree.h"

namespace headrace::cpu {
namespace {

void submit_add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) {
  submit(stream,
         [=] { with_type(a, [&]<typename T>(T) { cpu::add(a.as<T>(), b.as<T>(), sum.as<T>(), a.elements()); }); });
}

}  // namespace

void CpuKernels::convert(Stream& stream, const TensorView& from, const TensorView& to) {
  check::convert("convert", from, to);
  submit(stream, [=] {
    if (from.dtype == to.dtype) {
      std::memcpy(to.data, from.data, from.bytes());
    } else if (to.dtype == DType::kBF16) {
      cpu::to_bf16(f32(from), to.as<BFloat16>(), from.elements());
    } else {
      cpu::from_bf16(from.as<BFloat16>(), f32(to), from.elements());
    }
  });
}

void CpuKernels::activation_forward(Stream& stream, Activation activation, const TensorView& x,
                                    const TensorView& y) {
  check::same("activation_forward", x, x, kHalf);
  check::same("activation_forward", y, x, kHalf);
  submit(stream, [=] {
    with_type(x, [&]<typename T>(T) { cpu::activate(activation, x.as<T>(), y.as<T>(), x.elements()); });
  });
}

void CpuKernels::activation_backward(Stream& stream, Activation activation, const TensorView& x,
                                     const TensorView& dy, const TensorView& dx) {
  for (const TensorView& view : {x, dy, dx}) check::same("activation_backward", view, x, kHalf);
  submit(stream, [=] {
    with_type(x, [&]<typename T>(T) {
      cpu::activate_backward(activation, x.as<T>(), dy.as<T>(), dx.as<T>(), x.elements());
    });
  });
}

void CpuKernels::sigmoidal_forward(Stream& stream, Sigmoidal sigmoidal, const TensorView& x, const TensorView& y) {
  for (const TensorView& view : {x, y}) check::same("sigmoidal_forward", view, x, kHalf);
  submit(stream, [=] {
    with_type(x, [&]<typename T>(T) { cpu::sigmoidal(sigmoidal, x.as<T>(), y.as<T>(), x.elements()); });
  });
}

void CpuKernels::sigmoidal_backward(Stream& stream, Sigmoidal sigmoidal, const TensorView& y, const TensorView& dy,
                                    const TensorView& dx) {
  for (const TensorView& view : {y, dy, dx}) check::same("sigmoidal_backward", view, y, kHalf);
  submit(stream, [=] {
    with_type(y, [&]<typename T>(T) {
      cpu::sigmoidal_backward(sigmoidal, y.as<T>(), dy.as<T>(), dx.as<T>(), y.elements());
    });
  });
}

void CpuKernels::add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) {
  for (const TensorView& view : {a, b, sum}) check::same("add", view, a, kHalf);
  submit_add(stream, a, b, sum);
}

void CpuKernels::accumulate(Stream& stream, const TensorView& x, const TensorView& into) {
  for (const TensorView& view : {x, into}) check::same("accumulate", view, x, kHalf);
  submit_add(stream, into, x, into);
}

void CpuKernels::sum_tree(Stream& stream, std::span<const TensorView> parts, const TensorView& sum) {
  check::sum_tree("sum_tree", parts, sum);
  std::vector<float*> vectors;
  for (const TensorView& part : parts) vectors.push_back(part.as<float>());
  submit(stream, [=, vectors = std::move(vectors)] { cpu::sum_tree(vectors, sum.as<float>(), sum.elements()); });
}

void CpuKernels::scale(Stream& stream, const TensorView& x, const Factor& factor, const TensorView& y) {
  check::scale("scale", x, y, kHalf);
  submit(stream, [=] {
    const float by = factor.stored == nullptr ? factor.value : *factor.stored;
    with_type(y, [&]<typename Out>(Out) {
      if (x.dtype == DType::kU8) return cpu::scale(x.as<std::uint8_t>(), by, y.as<Out>(), x.elements());
      with_type(x, [&]<typename In>(In) { cpu::scale(x.as<In>(), by, y.as<Out>(), x.elements()); });
    });
  });
}

void CpuKernels::dropout(Stream& stream, const TensorView& x, float rate, std::uint64_t seed, int layer,
                         const StepScalars* scalars, const TensorView& y) {
  check::dropout("dropout", rate, layer);
  check::same("dropout", x, y, kHalf);
  check::same("dropout", y, x, kHalf);
  submit(stream, [=] {
    const DropoutKey key{.seed = seed,
                         .step = scalars->step,
                         .layer = static_cast<std::uint16_t>(layer),
                         .first_row = scalars->first_row};
    with_type(x, [&]<typename T>(T) {
      cpu::dropout(key, rate, x.as<T>(), y.as<T>(), x.shape[0], x.elements() / x.shape[0]);
    });
  });
}

void CpuKernels::copy_columns(Stream& stream, const TensorView& from, std::int64_t from_column,
                              const TensorView& to, std::int64_t to_column, std::int64_t columns) {
  check::columns("copy_columns", from, from_column, to, to_column, columns, kHalf);
  const std::size_t size = size_of(from.dtype), bytes = static_cast<std::size_t>(columns) * size;
  const auto step = [size](const TensorView& view) { return static_cast<std::size_t>(view.shape[1]) * size; };
  submit(stream, [=] {
    const auto* source = from.as<const std::byte>() + static_cast<std::size_t>(from_column) * size;
    auto* target = to.as<std::byte>() + static_cast<std::size_t>(to_column) * size;
    parallel_ranges(from.shape[0], row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
      for (auto row = static_cast<std::size_t>(begin); row < static_cast<std::size_t>(end); ++row) {
        std::memcpy(target + row * step(to), source + row * step(from), bytes);
      }
    });
  });
}

}  // namespace headrace::cpu
