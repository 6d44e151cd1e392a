// cuDNN's plans for one convolution, as PlanStore chooses from them. Private to the CUDA backend.
#pragma once

#include <cudnn.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/cuda/math/convolution_problem.h"
#include "headrace/devices/cuda/math/cudnn_plan.h"
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

}  // namespace headrace::cuda
