#include "headrace/devices/cuda/math/cublaslt_dense.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/math/batched_problem.h"
#include "headrace/devices/cuda/math/bias_epilogue.h"
#include "headrace/devices/cuda/math/convert.h"
#include "headrace/devices/cuda/math/scratch_layout.h"

namespace headrace::cuda {
namespace {

// bf16 products give either type; f32 products are written as f32.
GemmProblem with_types(GemmProblem problem, Precision precision, DType wanted) {
  problem.operands = precision == Precision::kBF16 ? DType::kBF16 : DType::kF32;
  problem.result = problem.operands == DType::kF32 ? DType::kF32 : wanted;
  return problem;
}

std::uintptr_t bytes_of(const TensorView& view, std::int64_t elements) {
  return static_cast<std::uintptr_t>(elements) * size_of(view.dtype);
}

// Returns the alignment of the tensor, and of all places in it that are multiples of `step` elements further on.
std::uint32_t alignment(const TensorView& view, std::int64_t step = 0) {
  const auto address = reinterpret_cast<std::uintptr_t>(view.data) | bytes_of(view, step);
  return static_cast<std::uint32_t>(std::uintptr_t{1} << std::min(std::countr_zero(address), 8));
}

void* moved(const TensorView& view, std::int64_t elements) {
  return static_cast<std::byte*>(view.data) + bytes_of(view, elements);
}

constexpr std::uint32_t kBiasAlignment = 16;  // the bytes that epilogues read at once

// The tensor itself, or its place in scratch memory if it has another type or too little alignment.
struct Stage {
  TensorView view;
  bool staged = false;
  std::size_t offset = 0;
};

Stage stage(const TensorView& tensor, DType dtype, std::uint32_t min_alignment, ScratchLayout& layout) {
  Stage result{.view = tensor};
  result.staged = tensor.defined() && (tensor.dtype != dtype || alignment(tensor) < min_alignment);
  if (!result.staged) return result;
  result.view.dtype = dtype;
  result.offset = layout.add(result.view.bytes());
  return result;
}

cudaError_t move(const TensorView& from, const TensorView& to, cudaStream_t stream) {
  if (from.dtype != to.dtype) return convert(from, to, stream);
  return cudaMemcpyAsync(to.data, from.data, from.bytes(), cudaMemcpyDeviceToDevice, stream);
}

}  // namespace

CublasLtDense::CublasLtDense(int ordinal, std::string device_name)
    : ordinal_(ordinal), device_(std::move(device_name)), matmul_(ordinal, device_), scratch_(device_) {}

// Row-major tensors are their transposes in column-major terms: y' = weights x', and so on.
void CublasLtDense::forward(cudaStream_t stream, const TensorView& x, const TensorView& weights,
                            const TensorView& bias, const TensorView& y, Precision precision) {
  const GemmProblem problem{
      .m = weights.shape[0], .n = x.shape[0], .k = x.shape[1], .a = Transpose::kYes, .bias = bias.defined()};
  run(stream, with_types(problem, precision, y.dtype), {.a = weights, .b = x, .result = y, .bias = bias});
}

void CublasLtDense::backward_data(cudaStream_t stream, const TensorView& dy, const TensorView& weights,
                                  const TensorView& dx, Precision precision) {
  const GemmProblem problem{.m = weights.shape[1], .n = dy.shape[0], .k = weights.shape[0]};
  run(stream, with_types(problem, precision, dx.dtype), {.a = weights, .b = dy, .result = dx, .bias = {}});
}

void CublasLtDense::backward_weights(cudaStream_t stream, const TensorView& x, const TensorView& dy,
                                     const TensorView& dweights, Precision precision) {
  const GemmProblem problem{.m = x.shape[1], .n = dy.shape[1], .k = x.shape[0], .b = Transpose::kYes};
  run(stream, with_types(problem, precision, dweights.dtype), {.a = x, .b = dy, .result = dweights, .bias = {}});
}

void CublasLtDense::batched(cudaStream_t stream, const Kernels::Matrices& a, const Kernels::Matrices& b,
                            float alpha, const Kernels::Matrices& result, Precision precision) {
  const BatchedCalls calls = batched_calls(a, b, result);
  run(stream, with_types(calls.problem, precision, result.tensor.dtype),
      {.a = b.tensor,
       .b = a.tensor,
       .result = result.tensor,
       .bias = {},
       .alpha = alpha,
       .repeats = calls.repeats,
       .a_step = calls.a_step,
       .b_step = calls.b_step,
       .result_step = calls.d_step});
}

void CublasLtDense::run(cudaStream_t stream, GemmProblem problem, const Call& call) {
  CUDA_CHECK(cudaSetDevice(ordinal_), device_);
  ScratchLayout layout;
  Stage a = stage(call.a, problem.operands, 1, layout);
  Stage b = stage(call.b, problem.operands, 1, layout);
  Stage result = stage(call.result, problem.result, 1, layout);
  Stage bias = stage(call.bias, problem.result, kBiasAlignment, layout);
  auto* base = static_cast<std::byte*>(scratch_.reserve(stream, layout.bytes()));
  for (Stage* each : {&a, &b, &result, &bias}) {
    if (each->staged) each->view.data = base + each->offset;
  }
  if (a.staged) CUDA_CHECK(move(call.a, a.view, stream), device_);
  if (b.staged) CUDA_CHECK(move(call.b, b.view, stream), device_);
  if (bias.staged) CUDA_CHECK(move(call.bias, bias.view, stream), device_);

  problem.align_a = alignment(a.view, call.a_step);
  problem.align_b = alignment(b.view, call.b_step);
  problem.align_d = alignment(result.view, call.result_step);
  bool complete = true;
  for (std::int64_t i = 0; i < call.repeats; ++i) {
    void* to = moved(result.view, i * call.result_step);
    complete = matmul_.run(stream, problem,
                           {.a = moved(a.view, i * call.a_step),
                            .b = moved(b.view, i * call.b_step),
                            .c = to,
                            .d = to,
                            .bias = bias.view.data,
                            .alpha = call.alpha,
                            .beta = 0});
  }
  if (!complete) CUDA_CHECK(add_bias(result.view, call.bias, stream), device_);
  if (result.staged) CUDA_CHECK(move(result.view, call.result, stream), device_);
}

}  // namespace headrace::cuda
