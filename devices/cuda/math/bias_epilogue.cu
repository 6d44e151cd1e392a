#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "headrace/devices/cuda/math/bias_epilogue.h"

namespace headrace::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 8192;  // the rest is a grid-stride loop

__device__ float to_float(float value) { return value; }
__device__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ void store(float& to, float value) { to = value; }
__device__ void store(__nv_bfloat16& to, float value) { to = __float2bfloat16_rn(value); }

// `relu` is 0 or 1; `bias` may be null.
template <typename T>
__global__ void epilogue_kernel(T* y, const float* bias, std::int64_t elements, std::int64_t channels, int relu) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements;
       i += stride) {
    float value = to_float(y[i]);
    if (bias != nullptr) value += bias[i % channels];
    if (relu != 0 && !(value > 0)) value = 0;
    store(y[i], value);
  }
}

template <typename T>
cudaError_t launch(const TensorView& y, const TensorView& bias, Epilogue epilogue, cudaStream_t stream) {
  const std::int64_t elements = y.elements();
  const auto blocks = static_cast<unsigned int>(std::min((elements + kThreads - 1) / kThreads, kMaxBlocks));
  epilogue_kernel<T><<<blocks, kThreads, 0, stream>>>(y.as<T>(),
                                                      has_bias(epilogue) ? bias.as<const float>() : nullptr,
                                                      elements, y.shape.back(), has_relu(epilogue) ? 1 : 0);
  return cudaGetLastError();
}

}  // namespace

cudaError_t apply_epilogue(const TensorView& y, const TensorView& bias, Epilogue epilogue, cudaStream_t stream) {
  if (epilogue == Epilogue::kNone || y.elements() == 0) return cudaSuccess;
  if (y.dtype == DType::kBF16) return launch<__nv_bfloat16>(y, bias, epilogue, stream);
  return launch<float>(y, bias, epilogue, stream);
}

}  // namespace headrace::cuda
