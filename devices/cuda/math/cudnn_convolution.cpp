#include "headrace/devices/cuda/math/cudnn_convolution.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/math/bias_epilogue.h"
#include "headrace/devices/cuda/math/convert.h"
#include "headrace/devices/cuda/math/cudnn_graph.h"
#include "headrace/devices/cuda/math/cudnn_offer.h"
#include "headrace/devices/cuda/math/scratch_layout.h"
#include "headrace/devices/cuda/math/uneven_padding.h"

namespace headrace::cuda {
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

CudnnConvolution::CudnnConvolution(int ordinal, std::string device_name, PlanStore& store)
    : ordinal_(ordinal),
      device_(std::move(device_name)),
      store_(store),
      target_(target_of(ordinal_, device_)),
      scratch_(device_),
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

void CudnnConvolution::forward(cudaStream_t stream, const TensorView& x, const TensorView& weights,
                               const TensorView& bias, const TensorView& y, const ConvOptions& options) {
  ConvolutionProblem problem =
      convolution_problem(ConvolutionPass::kForward, x.shape, weights.shape, y.shape, options);
  problem.bias = bias.defined();
  run(stream, problem, {.first = x, .second = weights, .result = y, .bias = bias});
}

void CudnnConvolution::backward_data(cudaStream_t stream, const TensorView& dy, const TensorView& weights,
                                     const TensorView& dx, const ConvOptions& options) {
  run(stream, convolution_problem(ConvolutionPass::kBackwardData, dx.shape, weights.shape, dy.shape, options),
      {.first = dy, .second = weights, .result = dx, .bias = {}});
}

void CudnnConvolution::backward_weights(cudaStream_t stream, const TensorView& x, const TensorView& dy,
                                        const TensorView& dweights, const ConvOptions& options) {
  run(stream, convolution_problem(ConvolutionPass::kBackwardWeights, x.shape, dweights.shape, dy.shape, options),
      {.first = x, .second = dy, .result = dweights, .bias = {}});
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
