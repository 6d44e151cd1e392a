// Convolutions with cuDNN: what it offers for a problem, and padding that it computes wrongly. Private to the CUDA
// backend.
#pragma once

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/cuda/math/convolution_problem.h"
#include "headrace/devices/cuda/math/cudnn_plan.h"
#include "headrace/devices/cuda/math/plan_store.h"
#include "headrace/devices/cuda/math/stream_scratch.h"
#include "headrace/devices/kernels.h"
#include "headrace/devices/tensor.h"

namespace headrace::cuda {

// Convolutions whose padding differs between opposite sides, as Keras's "same" padding with strides. cuDNN 9.19
// has plans that compute them wrongly: the gradient of 3 x 3 weights with stride 2 over 4 x 4 pixels, padded below
// and on the right alone, was that of other windows. So the images are extended by zeros until what is left to pad
// is even.

// Returns the problem of the same result with equal padding on opposite sides: x has the rows and columns more
// that one side was padded more than the other. Returns `problem` if that is so already.
ConvolutionProblem with_even_padding(const ConvolutionProblem& problem);

// Submits a copy of x to `extended`, an x of with_even_padding(problem), with zeros around it.
cudaError_t extend(const ConvolutionProblem& problem, const TensorView& x, std::byte* extended,
                   cudaStream_t stream);
// Submits a copy of the part of `extended` that is x.
cudaError_t crop(const ConvolutionProblem& problem, std::byte* extended, const TensorView& x, cudaStream_t stream);

// cuDNN's plans for one convolution, from which PlanStore chooses.

// Every member throws CudnnRefusal if cuDNN refuses the problem. REQUIRES: the handle's device is current.
class CudnnOffer final : public PlanOffer {
 public:
  // The problem must outlive it.
  CudnnOffer(const ConvolutionProblem& problem, cudnnHandle_t handle, Determinism determinism)
      : problem_(problem), handle_(handle), determinism_(determinism) {}

  bool has(const std::string& plan) override;
  std::string first() override;
  std::vector<PlanCandidate> measure() override;

  // Returns a plan that has(), first() or measure() named.
  CudnnPlan take(const std::string& plan);

 private:
  const ConvolutionProblem& problem_;
  cudnnHandle_t handle_;
  Determinism determinism_;
  std::map<std::string, CudnnPlan> built_;
};

// Returns one candidate per plan, in order. Each plan runs once untimed, then a few times in turn with the others,
// between events of a separate stream, on tensors of the problem's size in separate memory: nothing of the
// caller's is touched, and a capture of the caller's, which is relaxed, does not see it. Waits for all of it.
// Without that memory there are no times; a plan that does not run has none. Changes the handle's stream.
// REQUIRES: its device is current.
std::vector<PlanCandidate> time_plans(cudnnHandle_t handle, const ConvolutionProblem& problem,
                                      std::span<const CudnnPlan> plans);

// Convolutions through cuDNN's graph API.

// One device's convolutions. Plans are made on a problem's first call, even during a capture: cuDNN's first or, if
// HEADRACE_CUDA_MATH demands it, the store's choice of a few timed ones. HEADRACE_CUDA_PLANS=1 writes each choice
// to stderr. Products are bf16 in that precision, else f32 (never TF32); sums are f32. Operands of another type
// are first converted into scratch memory, and tensors that do not begin at a multiple of 16 bytes are moved
// there. In bf16 precision a gradient computed from bf16 activations is rounded to bf16 once, whatever its type.
// The caller has checked the shapes. Thread-safe over streams; throws DeviceError.
class CudnnConvolution {
 public:
  // The store must outlive it.
  CudnnConvolution(Device& device, PlanStore& store);
  ~CudnnConvolution();
  CudnnConvolution(const CudnnConvolution&) = delete;
  CudnnConvolution& operator=(const CudnnConvolution&) = delete;

  // The bias is f32; the weights, x, y, dy and dx f32 or bf16.
  void product(cudaStream_t stream, const kernel::ConvForward& of);
  void product(cudaStream_t stream, const kernel::ConvBackwardData& of);
  void product(cudaStream_t stream, const kernel::ConvBackwardWeights& of);

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
