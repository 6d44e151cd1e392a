#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "headrace/devices/cuda/math/cudnn_offer.h"
#include "headrace/devices/cuda/math/scratch_layout.h"

namespace headrace::cuda {
namespace {

constexpr std::size_t kTimedPlans = 8;
constexpr std::int64_t kTimedWorkspace = std::int64_t{256} << 20;

constexpr int kRuns = 5;
constexpr int kFill = 0x3C;  // as bf16 or f32 about 0.01: zeros would be unfairly fast

// A stream, two events on it and one block of memory; not ready if any of them is unavailable. The memory is
// allocated and freed in stream order: cudaFree waits for the whole GPU, which a capture of the caller's does not
// allow.
class Bench {
 public:
  explicit Bench(std::size_t bytes) {
    bool ready = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess;
    ready = ready && cudaEventCreate(&begin_) == cudaSuccess && cudaEventCreate(&end_) == cudaSuccess;
    ready = ready && cudaMallocAsync(&data_, bytes, stream_) == cudaSuccess;
    ready_ = ready && cudaMemsetAsync(data_, kFill, bytes, stream_) == cudaSuccess;
    if (!ready_) (void)cudaGetLastError();  // later calls must not find the lack of memory
  }
  ~Bench() {
    if (data_ != nullptr) cudaFreeAsync(data_, stream_);
    if (stream_ != nullptr) cudaStreamSynchronize(stream_);
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  bool ready() const noexcept { return ready_; }
  cudaStream_t stream() const noexcept { return stream_; }
  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }

  // Returns the milliseconds of the work that `work` submits to stream(); negative if it failed.
  float time(const std::function<void()>& work) const {
    float milliseconds = -1;
    bool passed = cudaEventRecord(begin_, stream_) == cudaSuccess;
    work();
    passed = passed && cudaEventRecord(end_, stream_) == cudaSuccess && cudaEventSynchronize(end_) == cudaSuccess;
    if (!passed || cudaEventElapsedTime(&milliseconds, begin_, end_) != cudaSuccess) return -1;
    return milliseconds;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  void* data_ = nullptr;
  bool ready_ = false;
};

// The layout of a problem's tensors in the bench's memory.
struct Places {
  std::size_t first, second, result, bias, workspace, bytes;
};

Places places_of(const ConvolutionProblem& problem, std::span<const CudnnPlan> plans) {
  const bool forward = problem.pass == ConvolutionPass::kForward;
  const bool backward_data = problem.pass == ConvolutionPass::kBackwardData;
  const auto& first = backward_data ? problem.y : problem.x;
  const auto& second = forward || backward_data ? problem.weights : problem.y;
  const auto& result = forward ? problem.y : backward_data ? problem.x : problem.weights;
  std::int64_t workspace = 0;
  for (const CudnnPlan& plan : plans) workspace = std::max(workspace, plan.workspace_bytes);
  ScratchLayout layout;
  Places places{};
  places.first = layout.add(bytes_of(first, problem.operands));
  places.second = layout.add(bytes_of(second, problem.operands));
  places.result = layout.add(bytes_of(result, problem.result));
  places.bias = layout.add(static_cast<std::size_t>(problem.y[3]) * sizeof(float));
  places.workspace = layout.add(static_cast<std::size_t>(workspace));
  places.bytes = layout.bytes();
  return places;
}

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

std::vector<PlanCandidate> time_plans(cudnnHandle_t handle, const ConvolutionProblem& problem,
                                      std::span<const CudnnPlan> plans) {
  std::vector<PlanCandidate> candidates;
  for (const CudnnPlan& plan : plans)
    candidates.push_back({.name = plan.name, .workspace_bytes = plan.workspace_bytes});
  const Places at = places_of(problem, plans);
  const Bench bench(at.bytes);
  if (!bench.ready() || cudnnSetStream(handle, bench.stream()) != CUDNN_STATUS_SUCCESS) return candidates;
  const CudnnOperands operands{.first = bench.data() + at.first,
                               .second = bench.data() + at.second,
                               .result = bench.data() + at.result,
                               .bias = problem.bias ? bench.data() + at.bias : nullptr,
                               .workspace = bench.data() + at.workspace};
  std::vector<bool> runs(plans.size(), true);
  for (int run = -1; run < kRuns; ++run) {  // the first one is not timed
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (!runs[i]) continue;
      try {
        const float milliseconds = bench.time([&] { execute(plans[i], handle, operands); });
        runs[i] = milliseconds >= 0;
        if (runs[i] && run >= 0) candidates[i].milliseconds.push_back(milliseconds);
      } catch (const CudnnRefusal&) {
        runs[i] = false;
      }
      if (!runs[i]) candidates[i].milliseconds.clear();
    }
  }
  return candidates;
}

}  // namespace headrace::cuda
