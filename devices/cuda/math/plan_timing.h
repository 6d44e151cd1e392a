// How long cuDNN's plans take on this GPU. Private to the CUDA backend.
#pragma once

#include <cudnn.h>

#include <span>
#include <vector>

#include "headrace/devices/cuda/math/convolution_problem.h"
#include "headrace/devices/cuda/math/cudnn_plan.h"
#include "headrace/devices/cuda/math/plan_choice.h"

namespace headrace::cuda {

// One candidate a plan, in their order. Each plan runs once unobserved and then a few times in turn with the
// others, between events of a stream of its own, on tensors of the problem's size in memory of its own: nothing of
// the caller's is touched, and a capture of the caller's, which is relaxed, does not see it. Waits for all of it.
// Without times where that memory is not to be had; a plan that does not run has none. The handle's stream is
// another afterwards; its device must be current.
std::vector<PlanCandidate> time_plans(cudnnHandle_t handle, const ConvolutionProblem& problem,
                                      std::span<const CudnnPlan> plans);

}  // namespace headrace::cuda
