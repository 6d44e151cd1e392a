// cuDNN's plans for one convolution, from which PlanStore chooses. Private to the CUDA backend.
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

}  // namespace headrace::cuda
