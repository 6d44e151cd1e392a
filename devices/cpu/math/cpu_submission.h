// Submission of the CPU kernels' work, and their view of tensors. Private to the CPU backend.
#pragma once

#include <utility>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/devices/cpu/math/element.h"
#include "headrace/devices/cpu/math/onednn_operands.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/tensor.h"

namespace headrace::cpu {

// Returns `stream` as a CpuStream. Throws DeviceError for another device's stream.
CpuStream& cpu_stream(Stream& stream);

template <typename Work>
void submit(Stream& stream, Work work) {
  cpu_stream(stream).submit([work = std::move(work)] {
    const FlushDenormals guard;
    work();
  });
}
inline void submit(Stream& stream, BoundKernel kernel) {
  submit(stream, [kernel = std::move(kernel)] { kernel->run(); });
}

inline float* f32(const TensorView& view) noexcept { return view.as<float>(); }

// Activations and weights may be bf16.
constexpr auto kHalf = check::Half::kAccepted;

template <typename Function>
void with_type(const TensorView& view, const Function& function) {
  with_type(view.dtype, function);
}

}  // namespace headrace::cpu
