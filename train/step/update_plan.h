// Plans which rule updates which part of the arenas.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/devices/kernels.h"
#include "headrace/train/graph.h"
#include "headrace/train/model/variable_layout.h"
#include "headrace/train/optimizers.h"
#include "headrace/train/step/muon_plan.h"
#include "headrace/train/step/program.h"
#include "headrace/train/step/replica_arenas.h"

namespace headrace {

// Immutable. Group 0 is the optimizer's own rule; its groups follow.
class UpdatePlan {
 public:
  // Throws ConfigError for a group that takes nothing, too many groups, Muon on a variable that is not a matrix,
  // and invalid custom rules, limits, averages and lookahead.
  UpdatePlan(const Graph& graph, const VariableLayout& layout, const Optimizer& optimizer);

  // Sets the rates, times `scale`, and corrections of the update after `step` others.
  void set_rates(std::uint64_t step, StepScalars& scalars, float scale = 1) const;

  // Returns whether the update after `step` others, or a later one, moves the trained variable.
  bool learns(const Variable& variable, std::uint64_t step) const;
  // Returns the gradients of the variables that do.
  std::vector<ArenaSlice> learning(std::uint64_t step) const;
  // Return whether gradients are limited, so that updates wait for all of them; and whether their norm is.
  bool clips() const noexcept { return clip_.on(); }
  bool limits_norm() const noexcept { return clip_.max_norm != 0; }
  // Returns the steps, in ascending order, from which on some variable no longer learns.
  std::vector<std::uint64_t> ends() const;

  // The arrays that custom rules need on a replica, as large as their largest call.
  struct Scratch {
    std::int64_t elements = 0;  // of each array
    UpdateScratch arrays = {};
  };
  Scratch scratch(bool host_memory) const;

  // Updates the arenas' elements [begin, end), with one call for each kind of rule among them, but one for each
  // run of custom rules: the calls of a step go through the arenas in order, without gaps. A batch of Muon's
  // matrices is updated with the last of its elements, whole variables of custom rules with the last elements of
  // all.
  void submit(Stream& stream, Kernels& kernels, const ReplicaArenas& arenas, std::int64_t begin, std::int64_t end,
              const StepScalars* scalars) const;

 private:
  struct Group {
    UpdateRule rule;
    Schedule learning_rate;
    std::optional<std::uint64_t> ends;  // the schedule's zero_from()
    NormSchedule norms;                 // Muon's
  };
  // Elements [begin, end) of the arenas: neighbours of one group, or what is updated as a whole.
  struct Part {
    std::int64_t begin = 0, end = 0;
    int group = 0;
    Shape shape = {};  // of what is updated as a whole: a matrix, or a variable
  };

  void add_groups(const Optimizer& optimizer);
  void add_parts(const Graph& graph, const VariableLayout& layout, const Optimizer& optimizer);
  void add_part(const TrainedVariable& described, const Variable& variable, int group);
  bool adjoins(const Part& before, std::int64_t begin) const;
  const UpdateRule& rule(int group) const { return groups_[static_cast<std::size_t>(group)].rule; }
  bool is_muon(int group) const { return std::holds_alternative<MuonOptions>(rule(group)); }
  // Returns the group's custom rule; null for a rule of this library.
  const UpdateFunction* own(int group) const;
  bool takes_whole(int group) const;
  bool learns(int group, std::uint64_t step) const;
  // Returns the parts of the elements [begin, end) under rules of this kind.
  template <typename Options>
  std::vector<UpdateRange<Options>> ranges(std::int64_t begin, std::int64_t end) const;
  void batch_matrices(int group);
  void submit_matrices(Stream& stream, Kernels& kernels, const ReplicaArenas& arenas,
                       const std::vector<Part>& batch, const StepScalars* scalars) const;
  void submit_own(Stream& stream, Kernels& kernels, const ReplicaArenas& arenas, const Part& part,
                  const StepScalars* scalars) const;

  GradientClip clip_;
  std::optional<Lookahead> lookahead_;
  std::optional<WeightAverage> average_;
  std::vector<Group> groups_;
  std::vector<Part> parts_;                  // in the arenas' order
  std::vector<std::vector<Part>> matrices_;  // Muon's: each batch is of one group, for one call
  std::int64_t elements_ = 0;
};

// Divides training into phases at the ends of learning rates: each phase runs less of the backward pass.

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
