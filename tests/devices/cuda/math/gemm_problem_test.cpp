// Which way a matrix product is computed where the library lacks some algorithms: a heuristic that says what it is
// told.
#include "headrace/devices/cuda/math/gemm_problem.h"

#include <gtest/gtest.h>

#include <vector>

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
}  // namespace headrace::cuda
