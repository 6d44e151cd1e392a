#include "headrace/devices/cuda/math/cudnn_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "headrace/devices/cuda/math/cudnn_graph.h"

namespace headrace::cuda {
namespace {

// Few of cuDNN's proposals are ever needed: the best ones come first.
constexpr std::int64_t kProposals = 24;

constexpr std::array kModes{CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};

// Returns none if this heuristic knows no engine for the graph.
std::vector<CudnnDescriptor> proposals(const CudnnGraph& graph, const CudnnTarget& target,
                                       cudnnBackendHeurMode_t mode) try {
  CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.descriptor());
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target.properties != nullptr) heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  heuristic.finalize();

  std::vector<CudnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < kProposals; ++i) {
    handles.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).handle());
  }
  const std::int64_t count =
      heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, kProposals, handles.data());
  configs.erase(configs.begin() + std::min(count, kProposals), configs.end());
  return configs;
} catch (const CudnnRefusal&) {
  return {};
}

// Lists with at most `Size` values.
template <typename Note, std::size_t Size>
struct Notes {
  std::array<Note, Size> values{};
  std::int64_t count = 0;

  bool has(Note note) const {
    return std::find(values.begin(), values.begin() + count, note) != values.begin() + count;
  }
};

bool admitted(const CudnnDescriptor& config, const ConvolutionProblem& problem, Determinism determinism) {
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  config.get(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  Notes<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> numerics;
  numerics.count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                              CUDNN_NUMERICAL_NOTE_TYPE_COUNT, numerics.values.data());
  Notes<cudnnBackendBehaviorNote_t, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT> behaviours;
  behaviours.count = engine.get(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, behaviours.values.data());
  if (behaviours.has(CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER)) return false;
  if (behaviours.has(CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER)) return false;
  if (numerics.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  if (numerics.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) && determinism != Determinism::kFastest) return false;
  if (problem.operands != DType::kF32) return true;
  // Transforms lose a few of f32's bits; tensor cores use 10 of them, enough for operands rounded to bf16.
  if (numerics.has(CUDNN_NUMERICAL_NOTE_FFT) || numerics.has(CUDNN_NUMERICAL_NOTE_WINOGRAD)) return false;
  if (numerics.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return false;
  return problem.precision == Precision::kBF16 || !numerics.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

std::string name_of(const CudnnDescriptor& config) {
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  config.get(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  std::string name = fmt::format("eng{}", engine.get_int64(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  std::vector<CudnnDescriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    handles.push_back(knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR).handle());
  }
  const std::int64_t count = config.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                        CUDNN_KNOB_TYPE_COUNTS, handles.data());
  for (std::int64_t i = 0; i < std::min<std::int64_t>(count, CUDNN_KNOB_TYPE_COUNTS); ++i) {
    const CudnnDescriptor& knob = knobs[static_cast<std::size_t>(i)];
    cudnnBackendKnobType_t type{};
    knob.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    name += fmt::format("_k{}={}", static_cast<int>(type), knob.get_int64(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  return name;
}

std::optional<CudnnPlan> build(const CudnnDescriptor& config, const CudnnTarget& target) {
  try {
    CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (target.handle != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
    plan.finalize();
    const std::int64_t bytes = plan.get_int64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    return CudnnPlan{.plan = std::move(plan), .name = name_of(config), .workspace_bytes = bytes};
  } catch (const CudnnRefusal&) {
    return std::nullopt;  // proposed, but cannot be built here: try the next one
  }
}

}  // namespace

std::vector<CudnnPlan> make_plans(const ConvolutionProblem& problem, const CudnnTarget& target,
                                  Determinism determinism, const PlanLimits& limits) {
  const CudnnGraph graph(problem, target.handle);
  std::vector<CudnnPlan> plans;
  std::vector<CudnnPlan> large;  // the first that exceeds the limit of the workspace
  for (const cudnnBackendHeurMode_t mode : kModes) {
    for (const CudnnDescriptor& config : proposals(graph, target, mode)) {
      if (plans.size() == limits.plans) return plans;
      if (!admitted(config, problem, determinism)) continue;
      auto plan = build(config, target);
      if (!plan) continue;
      const bool fits = limits.workspace_bytes < 0 || plan->workspace_bytes <= limits.workspace_bytes;
      if (fits) plans.push_back(std::move(*plan));
      if (!fits && large.empty()) large.push_back(std::move(*plan));
    }
    if (!plans.empty()) return plans;  // the fallback is for problems without others
  }
  return large;
}

std::optional<CudnnPlan> make_plan(const ConvolutionProblem& problem, const CudnnTarget& target,
                                   Determinism determinism, const std::string& name) {
  const CudnnGraph graph(problem, target.handle);
  for (const cudnnBackendHeurMode_t mode : kModes) {
    for (const CudnnDescriptor& config : proposals(graph, target, mode)) {
      if (!admitted(config, problem, determinism) || name_of(config) != name) continue;
      if (auto plan = build(config, target)) return plan;
    }
  }
  return std::nullopt;
}

void execute(const CudnnPlan& plan, cudnnHandle_t handle, const CudnnOperands& operands) {
  const std::array<std::int64_t, 4> ids{kFirstOperand, kSecondOperand, kResult, kBias};
  const std::array<const void*, 4> pointers{operands.first, operands.second, operands.result, operands.bias};
  const std::int64_t count = operands.bias == nullptr ? 3 : 4;
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &operands.workspace);
  pack.finalize();
  check_cudnn(cudnnBackendExecute(handle, plan.plan.handle(), pack.handle()), "cudnnBackendExecute");
}

}  // namespace headrace::cuda
