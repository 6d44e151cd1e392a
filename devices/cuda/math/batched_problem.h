// A product of many matrices as calls of cuBLASLt. Private to the CUDA backend.
#pragma once

#include <cstdint>

#include "headrace/devices/common/matrix_batch.h"
#include "headrace/devices/cuda/math/gemm_problem.h"

namespace headrace::cuda {

// The problem, and how often it is solved, each time further on in the tensors by these steps, in elements. Its A
// is in the second operand and its B in the first.
struct BatchedCalls {
  GemmProblem problem;
  std::int64_t repeats = 1, a_step = 0, b_step = 0, d_step = 0;
};

// Row-major matrices are their transposes in column-major terms: result' = b' a'. A call has one step from a
// matrix to the next. Without interleaved matrices all are one call; else those of the longer axis are, n or h,
// and those of the other one follow each other.
inline BatchedCalls batched_calls(const Kernels::Matrices& a, const Kernels::Matrices& b,
                                  const Kernels::Matrices& result) {
  const MatrixBatch of_a = matrix_batch(a), of_b = matrix_batch(b), of_result = matrix_batch(result);
  const bool one_call = !a.interleaved && !b.interleaved && !result.interleaved;
  const bool along_inner = one_call || of_result.outer < of_result.inner;
  const auto transpose = [](const Kernels::Matrices& of) {
    return of.transposed ? Transpose::kYes : Transpose::kNo;
  };
  const auto steps = [&](const MatrixBatch& of) {
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
  const auto step = [&](const MatrixBatch& of) { return along_inner ? of.outer_step : of.inner_step; };
  calls.repeats = along_inner ? of_result.outer : of_result.inner;
  calls.a_step = step(of_b);
  calls.b_step = step(of_a);
  calls.d_step = step(of_result);
  return calls;
}

}  // namespace headrace::cuda
