// The inputs of a convolution's plan: everything but the pointers. Private to the CUDA backend.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headrace/devices/base/dtype.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

enum class ConvolutionPass { kForward, kBackwardData, kBackwardWeights };

// The result of a pass: y, dx or dweights; its operands are the other two tensors.
struct ConvolutionProblem {
  using Extents = std::array<std::int64_t, 4>;
  using Pair = std::array<std::int64_t, 2>;  // height, width

  ConvolutionPass pass = ConvolutionPass::kForward;
  Extents x{};        // (N, H, W, C)
  Extents weights{};  // (O, KH, KW, C / groups)
  Extents y{};        // (N, H', W', O)
  Pair stride{1, 1}, dilation{1, 1};
  Pair pad_before{}, pad_after{};
  // bf16 with f32 operands: tensor cores multiply bf16 values in f32 storage exactly.
  Precision precision = Precision::kF32;
  DType operands = DType::kF32;  // f32 or bf16
  DType result = DType::kF32;    // f32 or bf16
  bool bias = false;             // added to the products in the same kernel: forward only; it is f32

  auto operator<=>(const ConvolutionProblem&) const = default;
};

// Returns the bytes of a tensor of these extents.
std::size_t bytes_of(const ConvolutionProblem::Extents& extents, DType dtype);

// Returns the problem of a call from its tensors' shapes and options, with f32 operands and result.
ConvolutionProblem convolution_problem(ConvolutionPass pass, const Shape& x, const Shape& weights, const Shape& y,
                                       const ConvOptions& options);

// The storage of activations: y and dy, x and dx.
enum class ActivationStorage { kF32, kBF16 };

// Returns the ways to compute `problem` with a result of type `wanted`, best first; not every library has each. In
// bf16 precision cuDNN writes f32 results of bf16 operands in the forward pass only. Backward from f32
// activations, operands are rounded to bf16 but stay in f32 storage, so that the result is not rounded; from bf16
// activations the result is rounded to bf16, which saves half the traffic.
std::vector<ConvolutionProblem> ways_to_compute(const ConvolutionProblem& problem, DType wanted,
                                                ActivationStorage storage);

// Returns "forward (2000, 32, 32, 3) * (24, 2, 2, 3) -> (2000, 31, 31, 24), stride 1, bfloat16 to float32",
// with ", dilation 2" after the stride if it is not 1, and "stride 2,1" where height and width differ.
std::string to_string(const ConvolutionProblem& problem);
// Returns to_string() with the padding, "..., padding 1,1 1,1": no two problems have the same text.
std::string full_text(const ConvolutionProblem& problem);

}  // namespace headrace::cuda
