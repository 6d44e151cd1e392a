#include "headrace/train/step/learning_phases.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

std::vector<ArenaSlice> zeroed_slices(const VariableLayout& layout, int layers, const Program::Needed& needed) {
  std::vector<ArenaSlice> zeroed;
  for (int id = 0; id < layers; ++id) {
    if (needed[static_cast<std::size_t>(id)]) continue;
    const auto [first, end] = layout.of_layer(id);
    for (std::size_t i = first; i < end; ++i) {
      const Variable& variable = layout.variables()[i];
      if (variable.spec.role != VariableRole::kTrained) continue;
      zeroed.push_back({variable.offset, variable.offset + variable.spec.shape.elements()});
    }
  }
  return zeroed;
}

// Returns slices in ascending order; neighbours are merged, with the gap between them, which is 0.
std::vector<ArenaSlice> summed_slices(const VariableLayout& layout, int layers, const Program::Needed& needed) {
  std::vector<ArenaSlice> found, summed;
  for (int id = 0; id < layers; ++id) {
    if (!needed[static_cast<std::size_t>(id)]) continue;
    const auto [first, end] = layout.of_layer(id);
    for (std::size_t i = first; i < end; ++i) {
      const Variable& variable = layout.variables()[i];
      if (!variable.learns()) continue;
      found.push_back({variable.offset, variable.offset + variable.spec.shape.elements()});
    }
  }
  std::ranges::sort(found, {}, &ArenaSlice::begin);
  for (const ArenaSlice& slice : found) {
    const bool joins = !summed.empty() && slice.begin - summed.back().end < VariableLayout::kAlignment;
    if (joins) summed.back().end = std::max(summed.back().end, slice.end);
    if (!joins) summed.push_back(slice);
  }
  return summed;
}

}  // namespace

std::vector<LearningPhase> learning_phases(const Program& program, const VariableLayout& layout, int layers,
                                           const UpdatePlan& plan) {
  std::vector<LearningPhase> phases{
      {.begin = 0, .needed = program.needed([](const Variable&) { return true; }), .learning = plan.learning(0)}};
  phases.front().summed = summed_slices(layout, layers, phases.front().needed);
  for (const std::uint64_t begin : plan.ends()) {
    auto needed = program.needed([&](const Variable& variable) { return plan.learns(variable, begin); });
    const bool same = needed == phases.back().needed && !plan.limits_norm();
    if (same || std::ranges::count(needed, true) == 0) continue;
    auto zeroed = zeroed_slices(layout, layers, needed), summed = summed_slices(layout, layers, needed);
    if (begin == 0) phases.clear();
    phases.push_back({.begin = begin,
                      .needed = std::move(needed),
                      .zeroed = std::move(zeroed),
                      .summed = std::move(summed),
                      .learning = plan.learning(begin)});
  }
  return phases;
}

}  // namespace headrace
