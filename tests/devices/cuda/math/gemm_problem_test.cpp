// Which way a matrix product is computed where the library lacks some algorithms: a heuristic that says what it is
// told.
#include "headrace/devices/cuda/math/gemm_problem.h"

#include <gtest/gtest.h>

#include <vector>

namespace headrace::cuda {
namespace {

constexpr Epilogue kEpilogues[] = {Epilogue::kNone, Epilogue::kRelu, Epilogue::kBias, Epilogue::kBiasRelu};

GemmProblem with(Epilogue epilogue) {
  return {.m = 10, .n = 64, .k = 512, .a = Transpose::kYes, .epilogue = epilogue};
}

TEST(GemmProblem, IsComputedAsAskedWhereThereIsAnAlgorithm) {
  for (const Epilogue epilogue : kEpilogues) {
    std::vector<GemmProblem> asked;
    const auto way = way_to_compute(with(epilogue), [&](const GemmProblem& problem) {
      asked.push_back(problem);
      return true;
    });
    EXPECT_EQ(way, with(epilogue));
    EXPECT_EQ(asked, std::vector{with(epilogue)}) << "one question is enough";
  }
}

TEST(GemmProblem, GoesWithoutTheEpilogueThatNoAlgorithmHas) {
  for (const Epilogue epilogue : {Epilogue::kRelu, Epilogue::kBias, Epilogue::kBiasRelu}) {
    std::vector<GemmProblem> asked;
    const auto way = way_to_compute(with(epilogue), [&](const GemmProblem& problem) {
      asked.push_back(problem);
      return problem.epilogue == Epilogue::kNone;
    });
    EXPECT_EQ(way, with(Epilogue::kNone)) << "the same product";
    EXPECT_EQ(asked, (std::vector{with(epilogue), with(Epilogue::kNone)}));
  }
}

TEST(GemmProblem, IsRefusedWhereThereIsNoAlgorithmAtAll) {
  for (const Epilogue epilogue : kEpilogues) {
    int asked = 0;
    const auto way = way_to_compute(with(epilogue), [&](const GemmProblem&) {
      ++asked;
      return false;
    });
    EXPECT_FALSE(way.has_value());
    EXPECT_EQ(asked, epilogue == Epilogue::kNone ? 1 : 2) << "nothing is asked twice";
  }
}

}  // namespace
}  // namespace headrace::cuda
