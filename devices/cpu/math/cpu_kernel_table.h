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

// The rows of a loss or a count that are real, the factor of their gradients, and their weights.
struct RealRows {
  std::int64_t count = 0;
  float factor = 0;
  const float* weights = nullptr;  // null: 1

  float weight(std::int64_t row) const noexcept { return weights == nullptr ? 1.0F : weights[row]; }
};

inline RealRows real_rows(const ExampleRows& rows) {
  return {.count = rows.scalars->rows,
          .factor = rows.scalars->inverse_global_rows,
          .weights = rows.weights.as<const float>()};
}

// Submits the gradient of a bias; none if `sums` is undefined.
inline void submit_column_sums(Stream& stream, const TensorView& matrix, const TensorView& sums) {
  if (!sums.defined()) return;
  submit(stream, [=] {
    with_type(matrix, [&]<typename T>(T) {
      cpu::column_sums(matrix.as<T>(), f32(sums), matrix.elements() / sums.elements(), sums.elements());
    });
  });
}

// The CPU's table of mathematics: binds arguments and submits.
class CpuKernels final : public Kernels {
 public:
  CpuKernels(const std::string& device, int threads, Bf16Products products);

  bool prefers_bf16() const noexcept override;
  DType activation_type(Precision) const noexcept override;

  // Defined by area: cpu_kernels_*.cpp, batch_norm*.cpp, depthwise.cpp, pooling.cpp.
  HEADRACE_KERNELS(HEADRACE_KERNEL_BODY)

 private:
  OneDnn onednn_;
};

}  // namespace headrace::cpu
