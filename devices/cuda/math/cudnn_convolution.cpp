#include "headrace/devices/cuda/math/cudnn_convolution.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/math/cudnn_graph.h"
#include "headrace/devices/cuda/math/own_kernels.h"
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

namespace {

bool reports_plans() {
  const char* word = std::getenv("HEADRACE_CUDA_PLANS");
  return word != nullptr && *word != '\0' && std::string(word) != "0";
}

PlanTarget target_of(int ordinal, const std::string& device) {
  cudaDeviceProp properties{};
  CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal), device);
  const std::size_t version = cudnnGetVersion();
  return {.gpu = printable(properties.name),
          .compute_capability = fmt::format("{}.{}", properties.major, properties.minor),
          .multiprocessors = properties.multiProcessorCount,
          .library = fmt::format("cuDNN {}.{}.{}", version / 10000, version % 10000 / 100, version % 100)};
}

[[noreturn]] void refuse(const std::string& device, const std::string& what, const std::string& reason) {
  throw DeviceError(ErrorCode::kDevice, "cuDNN: " + what + ": " + reason, device,
                    "`headrace doctor` shows cuDNN's version and the driver's");
}

bool aligned(const TensorView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(kTensorAlignment) == 0;
}

bool rounds(const ConvolutionProblem& problem) {
  return problem.precision == Precision::kBF16 && problem.operands == DType::kF32;
}

// A tensor of a call in the plan's form: in place, or in scratch memory, perhaps via bf16.
struct Stage {
  TensorView given, view, rounded;
  bool staged = false;
  std::size_t offset = 0, rounded_offset = 0;
};

enum class Rounding { kNone, kBF16 };

Stage stage(const TensorView& tensor, DType dtype, Rounding rounding, ScratchLayout& layout) {
  Stage result{.given = tensor, .view = tensor, .rounded = {}};
  const bool round = rounding == Rounding::kBF16 && tensor.dtype == DType::kF32;
  result.staged = tensor.defined() && (tensor.dtype != dtype || !aligned(tensor) || round);
  if (!result.staged) return result;
  result.view.dtype = dtype;
  result.offset = layout.add(result.view.bytes());
  if (!round) return result;
  result.rounded = TensorView{.data = nullptr, .shape = tensor.shape, .dtype = DType::kBF16};
  result.rounded_offset = layout.add(result.rounded.bytes());
  return result;
}

void place(Stage& stage, std::byte* base) {
  if (stage.staged) stage.view.data = base + stage.offset;
  if (stage.staged && stage.rounded.dtype == DType::kBF16) stage.rounded.data = base + stage.rounded_offset;
}

cudaError_t move(const TensorView& from, const TensorView& to, cudaStream_t stream) {
  if (from.dtype != to.dtype) return convert(from, to, stream);
  return cudaMemcpyAsync(to.data, from.data, from.bytes(), cudaMemcpyDeviceToDevice, stream);
}

cudaError_t bring(const Stage& stage, cudaStream_t stream) {
  if (!stage.staged) return cudaSuccess;
  if (!stage.rounded.defined()) return move(stage.given, stage.view, stream);
  const cudaError_t status = convert(stage.given, stage.rounded, stream);
  return status == cudaSuccess ? convert(stage.rounded, stage.view, stream) : status;
}

}  // namespace

CudnnConvolution::CudnnConvolution(Device& device, PlanStore& store)
    : ordinal_(device.info().ordinal),
      device_(device.info().name),
      store_(store),
      target_(target_of(ordinal_, device_)),
      scratch_(device),
      named_(named_determinism()),
      determinism_(named_.value_or(Determinism::kDefault)) {
  CUDA_CHECK(cudaSetDevice(ordinal_), device_);
  const cudnnStatus_t status = cudnnCreate(&handle_);
  if (status != CUDNN_STATUS_SUCCESS) refuse(device_, "it does not start", cudnnGetErrorString(status));
}

CudnnConvolution::~CudnnConvolution() {
  cudaSetDevice(ordinal_);
  plans_.clear();
  cudnnDestroy(handle_);
}

void CudnnConvolution::product(cudaStream_t stream, const kernel::ConvForward& of) {
  ConvolutionProblem problem =
      convolution_problem(ConvolutionPass::kForward, of.x.shape, of.weights.shape, of.y.shape, of.options);
  problem.bias = of.bias.defined();
  run(stream, problem, {.first = of.x, .second = of.weights, .result = of.y, .bias = of.bias});
}

void CudnnConvolution::product(cudaStream_t stream, const kernel::ConvBackwardData& of) {
  run(stream,
      convolution_problem(ConvolutionPass::kBackwardData, of.dx.shape, of.weights.shape, of.dy.shape, of.options),
      {.first = of.dy, .second = of.weights, .result = of.dx, .bias = {}});
}

void CudnnConvolution::product(cudaStream_t stream, const kernel::ConvBackwardWeights& of) {
  run(stream,
      convolution_problem(ConvolutionPass::kBackwardWeights, of.x.shape, of.dweights.shape, of.dy.shape,
                          of.options),
      {.first = of.x, .second = of.dy, .result = of.dweights, .bias = {}});
}

void CudnnConvolution::run(cudaStream_t stream, const ConvolutionProblem& problem, const Call& call) {
  CUDA_CHECK(cudaSetDevice(ordinal_), device_);
  // The first operand is an activation or its gradient in every pass.
  const ActivationStorage storage =
      call.first.dtype == DType::kBF16 ? ActivationStorage::kBF16 : ActivationStorage::kF32;
  const ConvolutionProblem even = with_even_padding(problem);
  const std::vector<ConvolutionProblem> ways = ways_to_compute(even, call.result.dtype, storage);
  const Way way = choose(ways);
  const Rounding rounding = rounds(way.problem) ? Rounding::kBF16 : Rounding::kNone;

  ScratchLayout layout;
  const std::size_t workspace = layout.add(static_cast<std::size_t>(way.plan.workspace_bytes));
  Stage first = stage(call.first, way.problem.operands, rounding, layout);
  Stage second = stage(call.second, way.problem.operands, rounding, layout);
  Stage bias = stage(call.bias, DType::kF32, Rounding::kNone, layout);
  Stage result = stage(call.result, way.problem.result, Rounding::kNone, layout);
  const bool backward_data = problem.pass == ConvolutionPass::kBackwardData;
  const bool extends = even.x != problem.x;
  const Stage& x = backward_data ? result : first;
  const std::size_t extended_at = extends ? layout.add(bytes_of(even.x, x.view.dtype)) : 0;
  auto* base = static_cast<std::byte*>(scratch_.reserve(stream, layout.bytes()));
  for (Stage* each : {&first, &second, &bias, &result}) place(*each, base);

  for (const Stage* each : {&first, &second, &bias}) CUDA_CHECK(bring(*each, stream), device_);
  std::byte* extended = extends ? base + extended_at : nullptr;
  if (extends && !backward_data) CUDA_CHECK(extend(problem, x.view, extended, stream), device_);
  submit(stream, way,
         {.first = extends && !backward_data ? extended : first.view.data,
          .second = second.view.data,
          .result = extends && backward_data ? extended : result.view.data,
          .bias = way.problem.bias ? bias.view.data : nullptr,
          .workspace = base + workspace});
  if (extends && backward_data) CUDA_CHECK(crop(problem, extended, x.view, stream), device_);
  if (way.problem.bias != problem.bias) CUDA_CHECK(add_bias(result.view, bias.view, stream), device_);
  if (result.staged) CUDA_CHECK(move(result.view, call.result, stream), device_);
}

CudnnConvolution::Way CudnnConvolution::choose(const std::vector<ConvolutionProblem>& ways) {
  const std::lock_guard lock(mutex_);
  for (const ConvolutionProblem& way : ways) {
    auto found = plans_.find(way);
    if (found == plans_.end()) {
      try {
        found = plans_.emplace(way, plan_for(way)).first;
      } catch (const CudnnRefusal& refusal) {
        refuse(device_, to_string(way), refusal.what());
      }
    }
    if (found->second) return {.problem = way, .plan = *found->second};
  }
  throw DeviceError(ErrorCode::kUnsupported, "cuDNN has no kernel for " + to_string(ways.back()), device_,
                    determinism_ != Determinism::kFastest
                        ? "HEADRACE_CUDA_MATH=fastest admits kernels that do not repeat their bits"
                        : "another precision or kernel size may have one");
}

std::optional<CudnnPlan> CudnnConvolution::plan_for(const ConvolutionProblem& problem) {
  CudnnOffer offer(problem, handle_, determinism_);
  const PlanStore::Choice choice =
      determinism_ == Determinism::kDefault
          ? PlanStore::Choice{.plan = offer.first(), .how = "cuDNN's first"}
          : store_.settle(target_, {.determinism = determinism_, .text = full_text(problem)}, offer);
  if (choice.plan.empty()) return std::nullopt;
  if (reports_plans()) {
    fmt::print(stderr, "{}: cuDNN: {}: {}, {}\n", device_, to_string(problem), choice.plan, choice.how);
  }
  return offer.take(choice.plan);
}

void CudnnConvolution::tune() {
  const std::lock_guard lock(mutex_);
  if (!named_) determinism_ = Determinism::kTuned;
}

std::map<std::string, std::string> CudnnConvolution::chosen_plans() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> chosen;
  for (const auto& [problem, plan] : plans_) {
    if (plan) chosen[full_text(problem)] = plan->name;
  }
  if (!chosen.empty()) chosen["the GPU and its library"] = to_string(target_);
  return chosen;
}

void CudnnConvolution::submit(cudaStream_t stream, const Way& way, const CudnnOperands& operands) {
  const std::lock_guard lock(mutex_);  // the handle has one stream at a time
  try {
    check_cudnn(cudnnSetStream(handle_, stream), "cudnnSetStream");
    execute(way.plan, handle_, operands);
  } catch (const CudnnRefusal& refusal) {
    refuse(device_, to_string(way.problem), refusal.what());
  }
}

}  // namespace headrace::cuda
