// What of the backward pass a step runs, as learning rates end.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/train/engine/program.h"
#include "headrace/train/engine/update_plan.h"
#include "headrace/train/engine/variable_layout.h"

namespace headrace {

// The steps from `begin` on, up to the next phase's.
struct LearningPhase {
  // Elements [begin, end) of the gradient arena.
  struct Slice {
    std::int64_t begin = 0, end = 0;
  };

  std::uint64_t begin = 0;
  Program::Needed needed = {};
  // Gradients that are no longer computed: they must be 0, as they are summed over replicas and go through the
  // update, which moves nothing.
  std::vector<Slice> silent = {};
};

// At least one, in ascending order, the first from step 0 on. A variable whose rate stays 0 needs no gradient,
// unless it is a layer's that has others or lies behind one which learns. Where no variable learns, all gradients
// are computed: somebody may look at them.
std::vector<LearningPhase> learning_phases(const Program& program, const VariableLayout& layout, int layers,
                                           const UpdatePlan& plan);

}  // namespace headrace
