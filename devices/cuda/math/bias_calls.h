// Biases of GpuKernels, added to products that no library fused with them, and their gradients. Private to the
// CUDA backend.
#pragma once

#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"

namespace headrace::cuda {

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
