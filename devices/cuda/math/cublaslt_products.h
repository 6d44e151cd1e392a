// Matrix products with cuBLASLt: its algorithms, and the products of dense layers and of batches. Private to the
// CUDA backend.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "headrace/devices/cuda/math/gemm_problem.h"
#include "headrace/devices/cuda/math/stream_scratch.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// Matrix products through cuBLASLt.

// Chooses an algorithm on a problem's first call, even during a capture, and keeps it: cuBLASLt's best among those
// that repeat their bits. Sums are f32, and so are products of f32 (never TF32). Thread-safe over streams; throws
// DeviceError.
class CublasLtMatmul {
 public:
  explicit CublasLtMatmul(Device& device);
  ~CublasLtMatmul();
  CublasLtMatmul(const CublasLtMatmul&) = delete;
  CublasLtMatmul& operator=(const CublasLtMatmul&) = delete;

  // In device memory. `c` may be `d`; it is not read if beta is 0. `bias` only if the problem has one.
  struct Operands {
    const void* a;
    const void* b;
    const void* c;
    void* d;
    const void* bias;
    float alpha, beta;
  };
  // Returns false if the problem's bias remains to be added: no algorithm does.
  bool run(cudaStream_t stream, const GemmProblem& problem, const Operands& operands);

 private:
  struct Plan;

  // `bias` is the call's, for which an algorithm is chosen.
  const Plan& plan_for(const GemmProblem& problem, const void* bias);
  std::unique_ptr<Plan> make_plan(const GemmProblem& problem, const void* bias);
  void check(cublasStatus_t status, const char* call, const GemmProblem& problem) const;

  int ordinal_;
  std::string device_;
  StreamScratch scratch_;
  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;
  std::map<GemmProblem, std::unique_ptr<Plan>> plans_;  // by mutex_
};

// Dense layers and batched products through cuBLASLt.

// One device's dense layers: x (M, K), weights (N, K), y (M, N). Products are bf16 in that precision, else f32;
// sums are f32. Operands of another type are first converted into scratch memory. Products of many matrices
// likewise. The caller has checked the shapes. Thread-safe over streams; throws DeviceError.
class CublasLtDense {
 public:
  explicit CublasLtDense(Device& device);

  // The bias is f32; the weights, x, y, dy and dx f32 or bf16. A bias added to a bf16 y is rounded to bf16.
  void product(cudaStream_t stream, const kernel::DenseForward& of);
  void product(cudaStream_t stream, const kernel::DenseBackwardData& of);
  void product(cudaStream_t stream, const kernel::DenseBackwardWeights& of);
  void product(cudaStream_t stream, const kernel::BatchedMatmul& of);

 private:
  // The operands in cuBLAS's order, the result, and perhaps a bias.
  struct Call {
    TensorView a, b, result, bias;
    float alpha = 1;
    // The problem is solved so often, each time further on in the tensors by these steps, in elements.
    std::int64_t repeats = 1, a_step = 0, b_step = 0, result_step = 0;
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
