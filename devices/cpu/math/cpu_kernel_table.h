// Submission of the CPU kernels' work, and their view of tensors. Private to the CPU backend.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/onednn.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/kernels.h"
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

template <typename Function>
void with_type(const TensorView& view, const Function& function) {
  with_type(view.dtype, function);
}

// The CPU's table of mathematics: binds arguments and submits.
class CpuKernels final : public Kernels {
 public:
  CpuKernels(const std::string& device, int threads, Bf16Products products);

  bool prefers_bf16() const noexcept override;
  DType activation_type(Precision) const noexcept override;

  // Defined by area: cpu_kernels_products.cpp, _elements, _images, _norms, _sequences, _losses, _counts, _updates.
  HEADRACE_KERNELS(HEADRACE_KERNEL_BODY)

 private:
  OneDnn onednn_;
};

}  // namespace headrace::cpu
