// Dense layers through cuBLASLt. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "headrace/devices/cuda/math/cublaslt_matmul.h"
#include "headrace/devices/cuda/math/stream_scratch.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// One device's dense layers: x (M, K), weights (N, K), y (M, N). Products are of bf16 where the precision says so,
// of f32 otherwise; sums are f32. Operands of another type are converted into scratch memory first. Shapes were
// checked by the caller. Thread-safe over streams; throws DeviceError.
class CublasLtDense {
 public:
  CublasLtDense(int ordinal, std::string device_name);

  // Activations are ones that products_fuse() (gpu_kernels.h). The bias is f32; the weights, x, y, dy and dx f32
  // or bf16. A bias that meets a bf16 y is rounded to bf16.
  void forward(cudaStream_t stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
               const TensorView& y, Activation activation, Precision precision);
  void backward_data(cudaStream_t stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                     Precision precision);
  void backward_weights(cudaStream_t stream, const TensorView& x, const TensorView& dy, const TensorView& dweights,
                        Precision precision);

 private:
  // The operands in cuBLAS's order, the result, perhaps a bias.
  struct Call {
    TensorView a, b, result, bias;
  };

  void run(cudaStream_t stream, GemmProblem problem, const Call& call);

  int ordinal_;
  std::string device_;
  CublasLtMatmul matmul_;
  StreamScratch scratch_;
};

}  // namespace headrace::cuda

namespace headrace {
using cuda::CublasLtDense;
}  // namespace headrace
