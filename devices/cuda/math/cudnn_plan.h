// cuDNN's plans of convolutions. Private to the CUDA backend.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/cuda/math/convolution_problem.h"
#include "headrace/devices/cuda/math/cudnn_graph.h"
#include "headrace/devices/cuda/math/plan_store.h"

namespace headrace::cuda {

// The device for which plans are made: that of a handle, or one described in words if there is none (tests).
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* properties = nullptr;
};

// Ready to be executed on its device any number of times.
struct CudnnPlan {
  CudnnDescriptor plan;
  std::string name;  // engine and knobs, "eng38_k2=3_k13=1": the same from run to run of one version of cuDNN
  std::int64_t workspace_bytes = 0;
};

struct PlanLimits {
  std::size_t plans = 1;              // maximum number
  std::int64_t workspace_bytes = -1;  // plans that need more are left out if others remain; -1: no limit
};

// Returns those of cuDNN's proposals that can be built, in its order of preference. Engines that would not repeat
// their bits are left out unless `determinism` admits them; those that round f32 operands are always left out.
// Throws CudnnRefusal if the problem itself is refused.
std::vector<CudnnPlan> make_plans(const ConvolutionProblem& problem, const CudnnTarget& target,
                                  Determinism determinism, const PlanLimits& limits);

// Returns the plan of this name among those of make_plans(); std::nullopt if it is not proposed or cannot be
// built.
std::optional<CudnnPlan> make_plan(const ConvolutionProblem& problem, const CudnnTarget& target,
                                   Determinism determinism, const std::string& name);

// Submits the plan to the handle's stream. `bias` may be null if the plan has none.
struct CudnnOperands {
  const void* first;
  const void* second;
  void* result;
  const void* bias;
  void* workspace;
};
void execute(const CudnnPlan& plan, cudnnHandle_t handle, const CudnnOperands& operands);

}  // namespace headrace::cuda
