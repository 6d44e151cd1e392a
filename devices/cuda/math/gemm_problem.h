// The inputs of the choice of a matrix product's algorithm. Private to the CUDA backend.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "headrace/devices/base/dtype.h"
#include "headrace/devices/cuda/math/convolution_problem.h"

namespace headrace::cuda {

enum class Transpose { kNo, kYes };

// How a problem's matrices are stored, in elements.
struct MatrixSteps {
  std::int64_t leading = 0;  // from a column to the next; 0: the stored rows
  std::int64_t batch = 0;    // from a matrix to the next; 0: directly after one another

  auto operator<=>(const MatrixSteps&) const = default;
};

// D = alpha op(A) op(B) + beta C, plus a bias, in cuBLAS's column-major terms: op(A) is m x k, op(B) k x n,
// C and D are m x n. A batch is a sequence of such products.
struct GemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  Transpose a = Transpose::kNo, b = Transpose::kNo;
  DType operands = DType::kF32;  // A's and B's: f32 or bf16
  DType result = DType::kF32;    // C's and D's: f32 or bf16
  std::int64_t batch = 1;
  MatrixSteps a_steps = {}, b_steps = {}, d_steps = {};
  bool bias = false;  // added to D's rows: m values of D's type
  // Each pointer's address is a multiple of this, a power of two up to 256.
  std::uint32_t align_a = 16, align_b = 16, align_d = 16;

  auto operator<=>(const GemmProblem&) const = default;
};

std::string to_string(const GemmProblem& problem);

// Returns the library's way to compute `problem`: unchanged or, if there is no algorithm with its bias,
// without it, the bias being added by a separate kernel afterwards; std::nullopt if it has neither. Calls
// `has_algorithm` once per way.
template <typename HasAlgorithm>
std::optional<GemmProblem> way_to_compute(const GemmProblem& problem, const HasAlgorithm& has_algorithm) {
  if (has_algorithm(problem)) return problem;
  if (!problem.bias) return std::nullopt;
  GemmProblem plain = problem;
  plain.bias = false;
  return has_algorithm(plain) ? std::optional(plain) : std::nullopt;
}

}  // namespace headrace::cuda
