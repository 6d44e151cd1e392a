// Divides training into phases at the ends of learning rates: each phase runs less of the backward pass.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/train/model/variable_layout.h"
#include "headrace/train/step/program.h"
#include "headrace/train/step/update_plan.h"

namespace headrace {

// The steps from `begin` up to the next phase.
struct LearningPhase {
  std::uint64_t begin = 0;
  Program::Needed needed = {};
  // Gradients that are no longer computed. They must be 0, because the update still reads them.
  std::vector<ArenaSlice> zeroed = {};
  // Gradients to sum over replicas: all that are computed for variables that are not frozen.
  std::vector<ArenaSlice> summed = {};
  // Gradients that clipping counts into the norm: all of the variables that learn.
  std::vector<ArenaSlice> learning = {};
};

// Returns at least one phase, in ascending order, the first from step 0. A variable whose rate stays 0 needs no
// gradient, unless its layer has others that do or comes after one that learns. If no variable learns, all
// gradients are computed, as callers may read them. If the norm of gradients is limited, each end begins a phase.
std::vector<LearningPhase> learning_phases(const Program& program, const VariableLayout& layout, int layers,
                                           const UpdatePlan& plan);

}  // namespace headrace
