#include "headrace/devices/cuda/math/gemm_problem.h"

#include <fmt/format.h>

namespace headrace::cuda {

std::string to_string(const GemmProblem& problem) {
  return fmt::format("{} products ({} x {}){} ({} x {}){}, {} to {}", problem.batch, problem.m, problem.k,
                     problem.a == Transpose::kYes ? "'" : "", problem.k, problem.n,
                     problem.b == Transpose::kYes ? "'" : "", to_string(problem.operands),
                     to_string(problem.result));
}

}  // namespace headrace::cuda
