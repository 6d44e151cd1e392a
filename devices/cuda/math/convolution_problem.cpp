#include "headrace/devices/cuda/math/convolution_problem.h"

#include <fmt/format.h>

#include <functional>
#include <numeric>

namespace headrace::cuda {
namespace {

using Pair = ConvolutionProblem::Pair;

ConvolutionProblem::Extents extents(const Shape& shape) { return {shape[0], shape[1], shape[2], shape[3]}; }

std::string text(const ConvolutionProblem::Extents& e) { return Shape{e[0], e[1], e[2], e[3]}.to_string(); }

std::string text(const Pair& pair) {
  return pair[0] == pair[1] ? fmt::format("{}", pair[0]) : fmt::format("{},{}", pair[0], pair[1]);
}

const char* name(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward: return "forward";
    case ConvolutionPass::kBackwardData: return "backward data";
    case ConvolutionPass::kBackwardWeights: return "backward weights";
  }
  return "unknown pass";
}

}  // namespace

std::size_t bytes_of(const ConvolutionProblem::Extents& extents, DType dtype) {
  const auto elements = std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  return static_cast<std::size_t>(elements) * size_of(dtype);
}

ConvolutionProblem convolution_problem(ConvolutionPass pass, const Shape& x, const Shape& weights, const Shape& y,
                                       const ConvOptions& options) {
  return {.pass = pass,
          .x = extents(x),
          .weights = extents(weights),
          .y = extents(y),
          .stride = {options.stride.height, options.stride.width},
          .dilation = {options.dilation.height, options.dilation.width},
          .pad_before = {options.pad_top, options.pad_left},
          .pad_after = {options.pad_bottom, options.pad_right},
          .precision = options.precision};
}

std::vector<ConvolutionProblem> ways_to_compute(const ConvolutionProblem& problem, DType wanted,
                                                ActivationStorage storage) {
  std::vector<ConvolutionProblem> ways;
  const auto add = [&](DType operands, DType result) {
    ConvolutionProblem way = problem;
    way.operands = operands;
    way.result = result;
    ways.push_back(way);
    if (!way.bias) return;
    way.bias = false;  // which is then a separate kernel
    ways.push_back(way);
  };
  const bool half = problem.precision == Precision::kBF16;
  const bool forward = problem.pass == ConvolutionPass::kForward;
  if (half && wanted == DType::kBF16) add(DType::kBF16, DType::kBF16);
  if (half && wanted == DType::kF32 && forward) add(DType::kBF16, DType::kF32);
  if (half && wanted == DType::kF32 && !forward && storage == ActivationStorage::kBF16) {
    add(DType::kBF16, DType::kBF16);
  }
  add(DType::kF32, DType::kF32);
  return ways;
}

std::string to_string(const ConvolutionProblem& problem) {
  const bool rounded = problem.precision == Precision::kBF16 && problem.operands == DType::kF32;
  return fmt::format("{} {} * {} -> {}, stride {}{}, {}{} to {}{}", name(problem.pass), text(problem.x),
                     text(problem.weights), text(problem.y), text(problem.stride),
                     problem.dilation == Pair{1, 1} ? "" : ", dilation " + text(problem.dilation),
                     rounded ? "rounded " : "", to_string(problem.operands), to_string(problem.result),
                     problem.bias ? ", bias" : "");
}

std::string full_text(const ConvolutionProblem& problem) {
  const auto& [top, left] = problem.pad_before;
  const auto& [bottom, right] = problem.pad_after;
  return fmt::format("{}, padding {},{} {},{}", to_string(problem), top, left, bottom, right);
}

}  // namespace headrace::cuda
