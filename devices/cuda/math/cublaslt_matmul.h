// Matrix products through cuBLASLt. Private to the CUDA backend.
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

namespace headrace::cuda {

// Chooses an algorithm on a problem's first call, even during a capture, and keeps it: cuBLASLt's best among those
// that repeat their bits. Sums are f32, and so are products of f32 (never TF32). Thread-safe over streams; throws
// DeviceError.
class CublasLtMatmul {
 public:
  CublasLtMatmul(int ordinal, std::string device_name);
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

}  // namespace headrace::cuda
