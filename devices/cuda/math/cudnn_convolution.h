// Convolutions through cuDNN's graph API. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/cuda/math/convolution_problem.h"
#include "headrace/devices/cuda/math/cudnn_plan.h"
#include "headrace/devices/cuda/math/plan_store.h"
#include "headrace/devices/cuda/math/stream_scratch.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// One device's convolutions. Plans are made on a problem's first call, even during a capture: cuDNN's first or, if
// HEADRACE_CUDA_MATH demands it, the store's choice of a few timed ones. HEADRACE_CUDA_PLANS=1 writes each choice
// to stderr. Products are bf16 in that precision, else f32 (never TF32); sums are f32. Operands of another type
// are first converted into scratch memory, and tensors that do not begin at a multiple of 16 bytes are moved
// there. In bf16 precision a gradient computed from bf16 activations is rounded to bf16 once, whatever its type.
// The caller has checked the shapes. Thread-safe over streams; throws DeviceError.
class CudnnConvolution {
 public:
  // The store must outlive it.
  CudnnConvolution(int ordinal, std::string device_name, PlanStore& store);
  ~CudnnConvolution();
  CudnnConvolution(const CudnnConvolution&) = delete;
  CudnnConvolution& operator=(const CudnnConvolution&) = delete;

  // The bias is f32; the weights, x, y, dy and dx f32 or bf16.
  void forward(cudaStream_t stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
               const TensorView& y, const ConvOptions& options);
  void backward_data(cudaStream_t stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                     const ConvOptions& options);
  void backward_weights(cudaStream_t stream, const TensorView& x, const TensorView& dy, const TensorView& dweights,
                        const ConvOptions& options);

  // Implement Kernels::tune_plans() and chosen_plans().
  void tune();
  std::map<std::string, std::string> chosen_plans() const;

 private:
  // The tensors of a call: two operands, a result and perhaps a bias.
  struct Call {
    TensorView first, second, result, bias;
  };

  void run(cudaStream_t stream, const ConvolutionProblem& problem, const Call& call);
  // The first way for which cuDNN has a plan. Throws DeviceError(kUnsupported) if there is none.
  struct Way {
    const ConvolutionProblem& problem;
    const CudnnPlan& plan;
  };
  Way choose(const std::vector<ConvolutionProblem>& ways);
  // Returns std::nullopt if cuDNN has none. REQUIRES: mutex_ is held.
  std::optional<CudnnPlan> plan_for(const ConvolutionProblem& problem);
  void submit(cudaStream_t stream, const Way& way, const CudnnOperands& operands);

  int ordinal_;
  std::string device_;
  PlanStore& store_;
  PlanTarget target_;
  StreamScratch scratch_;
  mutable std::mutex mutex_;          // guards the members below
  std::optional<Determinism> named_;  // by HEADRACE_CUDA_MATH
  Determinism determinism_;
  cudnnHandle_t handle_ = nullptr;
  std::map<ConvolutionProblem, std::optional<CudnnPlan>> plans_;
};

}  // namespace headrace::cuda

namespace headrace {
using cuda::CudnnConvolution;
}  // namespace headrace
