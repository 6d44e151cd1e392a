// cuDNN's plans for one convolution, as PlanStore chooses from them. Private to the CUDA backend.
#pragma once

#include <cudnn.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/cuda/math/convolution_problem.h"
#include "headrace/devices/cuda/math/cudnn_plan.h"
#include "headrace/devices/cuda/math/plan_choice.h"
#include "headrace/devices/cuda/math/plan_store.h"

namespace headrace::cuda {

// On the current device, that of the handle. Every member throws CudnnRefusal when the problem itself is refused.
class CudnnOffer final : public PlanOffer {
 public:
  // The problem must outlive it.
  CudnnOffer(const ConvolutionProblem& problem, cudnnHandle_t handle, Determinism determinism)
      : problem_(problem), handle_(handle), determinism_(determinism) {}

  bool has(const std::string& plan) override;
  std::string first() override;
  std::vector<PlanCandidate> measure() override;

  // A plan that has(), first() or measure() named.
  CudnnPlan take(const std::string& plan);

 private:
  const ConvolutionProblem& problem_;
  cudnnHandle_t handle_;
  Determinism determinism_;
  std::map<std::string, CudnnPlan> built_;
};

// One candidate a plan, in their order. Each plan runs once unobserved and then a few times in turn with the
// others, between events of a stream of its own, on tensors of the problem's size in memory of its own: nothing of
// the caller's is touched, and a capture of the caller's, which is relaxed, does not see it. Waits for all of it.
// Without times where that memory is not to be had; a plan that does not run has none. The handle's stream is
// another afterwards; its device must be current.
std::vector<PlanCandidate> time_plans(cudnnHandle_t handle, const ConvolutionProblem& problem,
                                      std::span<const CudnnPlan> plans);

}  // namespace headrace::cuda
