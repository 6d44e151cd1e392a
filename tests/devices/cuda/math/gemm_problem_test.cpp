// Which way a matrix product is computed where the library lacks some algorithms: a heuristic that says what it is
// told.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "headrace/devices/cuda/math/gemm_problem.h"
#include "headrace/tests/support/reference.h"

namespace headrace::cuda {
namespace {

GemmProblem gemm_problem(bool bias) { return {.m = 10, .n = 64, .k = 512, .a = Transpose::kYes, .bias = bias}; }

TEST(GemmProblem, IsComputedAsAskedWithoutItsBiasOrNotAtAll) {
  for (const bool bias : {false, true}) {
    std::vector<GemmProblem> asked;
    const auto way = [&](const auto& has_algorithm) {
      asked.clear();
      return way_to_compute(gemm_problem(bias), [&](const GemmProblem& one) {
        asked.push_back(one);
        return has_algorithm(one);
      });
    };
    EXPECT_EQ(way([](const GemmProblem&) { return true; }), gemm_problem(bias));
    EXPECT_EQ(asked, std::vector{gemm_problem(bias)}) << "one question is enough";
    EXPECT_EQ(way([](const GemmProblem& one) { return !one.bias; }), gemm_problem(false)) << "the same product";
    EXPECT_FALSE(way([](const GemmProblem&) { return false; }).has_value());
    EXPECT_EQ(asked.size(), bias ? 2U : 1U) << "nothing is asked twice";
  }
}

}  // namespace

// The calls of cuBLASLt that a product of many matrices becomes, made in loops: each reads and writes what it
// should.

namespace {

using Numbers = std::vector<float>;

// An element of op(X) in column-major terms, X being one of a call's matrices.
std::size_t place(const MatrixSteps& steps, Transpose transpose, std::int64_t begin, std::int64_t number,
                  std::int64_t row, std::int64_t column) {
  if (transpose == Transpose::kYes) std::swap(row, column);
  return static_cast<std::size_t>(begin + number * steps.batch + column * steps.leading + row);
}

// As cublasLtMatmul() is documented. Returns how often each element of the result was written.
std::vector<int> solve(const BatchedCalls& calls, const Numbers& a, const Numbers& b, Numbers& d) {
  std::vector<int> written(d.size());
  const GemmProblem& p = calls.problem;
  for (std::int64_t call = 0; call < calls.repeats; ++call) {
    for (std::int64_t number = 0; number < p.batch; ++number) {
      for (std::int64_t m = 0; m < p.m; ++m) {
        for (std::int64_t n = 0; n < p.n; ++n) {
          float sum = 0;
          for (std::int64_t k = 0; k < p.k; ++k) {
            sum += a.at(place(p.a_steps, p.a, call * calls.a_step, number, m, k)) *
                   b.at(place(p.b_steps, p.b, call * calls.b_step, number, k, n));
          }
          const std::size_t to = place(p.d_steps, Transpose::kNo, call * calls.d_step, number, m, n);
          d.at(to) = sum;
          ++written.at(to);
        }
      }
    }
  }
  return written;
}

// The matrices in a tensor of these extents, (outer, inner, rows, columns) in the product's terms.
kernel::Matrices matrices(Numbers& numbers, std::int64_t outer, std::int64_t inner, std::int64_t rows,
                          std::int64_t columns, bool interleaved, bool transposed) {
  if (transposed) std::swap(rows, columns);
  const Shape shape = interleaved ? Shape{outer, rows, inner, columns} : Shape{outer, inner, rows, columns};
  numbers = test::random_floats(shape.elements(), 1);
  return {{numbers.data(), shape, DType::kF32}, interleaved, transposed};
}

float element(const kernel::Matrices& of, std::int64_t outer, std::int64_t inner, std::int64_t row,
              std::int64_t column) {
  if (of.transposed) std::swap(row, column);
  const Shape& shape = of.tensor.shape;
  const std::int64_t second = of.interleaved ? row : inner, third = of.interleaved ? inner : row;
  return of.tensor.as<float>()[((outer * shape[1] + second) * shape[2] + third) * shape[3] + column];
}

TEST(BatchedProblem, CoversTheProductInEveryLayout) {
  constexpr std::int64_t kM = 3, kK = 4, kN = 5;
  for (const auto& [outer, inner] : std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 3}, {4, 2}, {1, 1}}) {
    for (int way = 0; way < 32; ++way) {
      Numbers a, b, d;
      const kernel::Matrices of_a = matrices(a, outer, inner, kM, kK, way & 1, way & 2);
      const kernel::Matrices of_b = matrices(b, outer, inner, kK, kN, way & 4, way & 8);
      const kernel::Matrices of_d = matrices(d, outer, inner, kM, kN, way & 16, false);
      const BatchedCalls calls = batched_calls(of_a, of_b, of_d);
      EXPECT_LE(calls.repeats, std::min(outer, inner));
      EXPECT_EQ(solve(calls, b, a, d), std::vector<int>(d.size(), 1)) << way;
      for (std::int64_t at = 0; at < static_cast<std::int64_t>(d.size()); ++at) {
        const std::int64_t n = at % kN, m = at / kN % kM, i = at / (kN * kM) % inner, o = at / (kN * kM * inner);
        float sum = 0;
        for (std::int64_t k = 0; k < kK; ++k) sum += element(of_a, o, i, m, k) * element(of_b, o, i, k, n);
        ASSERT_FLOAT_EQ(element(of_d, o, i, m, n), sum) << way << " at " << at;
      }
    }
  }
}

}  // namespace
}  // namespace headrace::cuda
