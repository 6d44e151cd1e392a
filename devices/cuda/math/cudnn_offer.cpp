#include "headrace/devices/cuda/math/cudnn_offer.h"

#include <cstdint>
#include <utility>

#include "headrace/devices/cuda/math/plan_timing.h"

namespace headrace::cuda {
namespace {

constexpr std::size_t kTimedPlans = 8;
constexpr std::int64_t kTimedWorkspace = std::int64_t{256} << 20;

}  // namespace

bool CudnnOffer::has(const std::string& plan) {
  if (built_.contains(plan)) return true;
  std::optional<CudnnPlan> made = make_plan(problem_, {.handle = handle_}, determinism_, plan);
  if (made) built_.emplace(plan, std::move(*made));
  return built_.contains(plan);
}

std::string CudnnOffer::first() {
  std::vector<CudnnPlan> plans = make_plans(problem_, {.handle = handle_}, determinism_, {});
  if (plans.empty()) return {};
  std::string name = plans.front().name;
  built_.emplace(name, std::move(plans.front()));
  return name;
}

std::vector<PlanCandidate> CudnnOffer::measure() {
  std::vector<CudnnPlan> plans = make_plans(problem_, {.handle = handle_}, determinism_,
                                            {.plans = kTimedPlans, .workspace_bytes = kTimedWorkspace});
  std::vector<PlanCandidate> candidates;
  if (plans.size() > 1) {
    candidates = time_plans(handle_, problem_, plans);
  } else if (!plans.empty()) {
    candidates.push_back({.name = plans.front().name, .workspace_bytes = plans.front().workspace_bytes});
  }
  for (CudnnPlan& plan : plans) built_.emplace(plan.name, std::move(plan));
  return candidates;
}

CudnnPlan CudnnOffer::take(const std::string& plan) { return std::move(built_.extract(plan).mapped()); }

}  // namespace headrace::cuda
