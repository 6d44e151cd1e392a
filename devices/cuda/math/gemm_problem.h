// Matrix products as cuBLAS sees them: what an algorithm is chosen by, one at a time and in batches. Private to
// the CUDA backend.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "headrace/devices/base/dtype.h"
#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/convolution_problem.h"

namespace headrace::cuda {

// The inputs of the choice of a matrix product's algorithm.

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

// A product of many matrices as calls of cuBLASLt.

// The problem, and how often it is solved, each time further on in the tensors by these steps, in elements. Its A
// is in the second operand and its B in the first.
struct BatchedCalls {
  GemmProblem problem;
  std::int64_t repeats = 1, a_step = 0, b_step = 0, d_step = 0;
};

// Row-major matrices are their transposes in column-major terms: result' = b' a'. A call has one step from a
// matrix to the next. Without interleaved matrices all are one call; else those of the longer axis are, n or h,
// and those of the other one follow each other.
inline BatchedCalls batched_calls(const kernel::Matrices& a, const kernel::Matrices& b,
                                  const kernel::Matrices& result) {
  const kernel::MatrixBatch of_a = matrix_batch(a), of_b = matrix_batch(b), of_result = matrix_batch(result);
  const bool one_call = !a.interleaved && !b.interleaved && !result.interleaved;
  const bool along_inner = one_call || of_result.outer < of_result.inner;
  const auto transpose = [](const kernel::Matrices& of) {
    return of.transposed ? Transpose::kYes : Transpose::kNo;
  };
  const auto steps = [&](const kernel::MatrixBatch& of) {
    return MatrixSteps{.leading = of.row_step, .batch = along_inner ? of.inner_step : of.outer_step};
  };
  BatchedCalls calls;
  calls.problem = {.m = of_result.columns,
                   .n = of_result.rows,
                   .k = a.transposed ? of_a.rows : of_a.columns,
                   .a = transpose(b),
                   .b = transpose(a),
                   .batch = along_inner ? of_result.inner : of_result.outer,
                   .a_steps = steps(of_b),
                   .b_steps = steps(of_a),
                   .d_steps = steps(of_result)};
  if (one_call) {
    calls.problem.batch = of_result.outer * of_result.inner;
    return calls;
  }
  const auto step = [&](const kernel::MatrixBatch& of) { return along_inner ? of.outer_step : of.inner_step; };
  calls.repeats = along_inner ? of_result.outer : of_result.inner;
  calls.a_step = step(of_b);
  calls.b_step = step(of_a);
  calls.d_step = step(of_result);
  return calls;
}

}  // namespace headrace::cuda
