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

// One device's convolutions. Plans are made at a problem's first call, also during a capture: cuDNN's first or,
// where HEADRACE_CUDA_MATH asks for it, the store's choice of a few that are timed. HEADRACE_CUDA_PLANS=1 writes
// each choice to stderr. Products are of bf16 where the precision says so, of f32 (never TF32) otherwise; sums are
// f32. Operands of another type are converted into scratch memory first, and a tensor that does not begin at a
// multiple of 16 bytes is moved there. In bf16 precision a gradient computed from bf16 activations is rounded to
// bf16 once, whatever its type. Shapes were checked by the caller. Thread-safe over streams; throws DeviceError.
class CudnnConvolution {
 public:
  // The store must outlive it.
  CudnnConvolution(int ordinal, std::string device_name, PlanStore& store);
  ~CudnnConvolution();
  CudnnConvolution(const CudnnConvolution&) = delete;
  CudnnConvolution& operator=(const CudnnConvolution&) = delete;

  // Activations are ones that products_fuse() (gpu_kernels.h). The bias is f32; the weights, x, y, dy and dx f32
  // or bf16.
  void forward(cudaStream_t stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
               const TensorView& y, const ConvOptions& options, Activation activation);
  void backward_data(cudaStream_t stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                     const ConvOptions& options);
  void backward_weights(cudaStream_t stream, const TensorView& x, const TensorView& dy, const TensorView& dweights,
                        const ConvOptions& options);

  // As Kernels::tune_plans() and chosen_plans().
  void tune();
  std::map<std::string, std::string> chosen_plans() const;

 private:
  // What a call works on: two operands, a result and perhaps a bias.
  struct Call {
    TensorView first, second, result, bias;
  };

  void run(cudaStream_t stream, const ConvolutionProblem& problem, const Call& call);
  // The first way that cuDNN has a plan for. Throws DeviceError(kUnsupported) where there is none.
  struct Way {
    const ConvolutionProblem& problem;
    const CudnnPlan& plan;
  };
  Way choose(const std::vector<ConvolutionProblem>& ways);
  // Empty where cuDNN has none. By mutex_.
  std::optional<CudnnPlan> plan_for(const ConvolutionProblem& problem);
  void submit(cudaStream_t stream, const Way& way, const CudnnOperands& operands);

  int ordinal_;
  std::string device_;
  PlanStore& store_;
  PlanTarget target_;
  StreamScratch scratch_;
  mutable std::mutex mutex_;          // guards what follows
  std::optional<Determinism> named_;  // by HEADRACE_CUDA_MATH
  Determinism determinism_;
  cudnnHandle_t handle_ = nullptr;
  std::map<ConvolutionProblem, std::optional<CudnnPlan>> plans_;
};

}  // namespace headrace::cuda

namespace headrace {
using cuda::CudnnConvolution;
}  // namespace headrace
