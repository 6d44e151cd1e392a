#include "headrace/train/engine/update_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "headrace/devices/base/error.h"
#include "headrace/train/engine/parameter_grouping.h"

namespace headrace {
namespace {

void check_options(const Optimizer& optimizer) {
  const auto& [max_norm, max_value] = optimizer.clip;
  for (const float limit : {max_norm, max_value}) {
    if (std::isfinite(limit) && limit >= 0) continue;
    throw ConfigError(fmt::format("gradients cannot be limited to {}", limit),
                      "max_norm and max_value are above 0, or 0 for no limit");
  }
  const auto& lookahead = optimizer.lookahead;
  if (lookahead && !(lookahead->every >= 1 && lookahead->share > 0 && lookahead->share <= 1)) {
    throw ConfigError(
        fmt::format("lookahead cannot go a share of {} every {} steps", lookahead->share, lookahead->every),
        "the share lies above 0 and at 1 or below, every 1 step or more");
  }
  if (optimizer.average && !(optimizer.average->decay >= 0 && optimizer.average->decay <= 1)) {
    throw ConfigError(fmt::format("an average of weights cannot decay by {}", optimizer.average->decay),
                      "the decay lies from 0 to 1");
  }
}

TensorView as_shape(const TensorView& flat, const Shape& shape) { return {flat.data, shape, flat.dtype}; }

}  // namespace

UpdatePlan::UpdatePlan(const Graph& graph, const VariableLayout& layout, const Optimizer& optimizer)
    : clip_(optimizer.clip),
      lookahead_(optimizer.lookahead),
      average_(optimizer.average),
      elements_(layout.trained_elements()) {
  check_options(optimizer);
  add_groups(optimizer);
  add_parts(graph, layout, optimizer);
}

void UpdatePlan::add_groups(const Optimizer& optimizer) {
  const auto add = [this](const UpdateRule& rule, const Schedule& learning_rate) {
    const auto* muon = std::get_if<MuonOptions>(&rule);
    const NormInterval interval = muon != nullptr ? muon->norm_interval : NormInterval{};
    groups_.push_back({.rule = rule,
                       .learning_rate = learning_rate,
                       .ends = learning_rate.zero_from(),
                       .norms = NormSchedule(interval)});
  };
  add(optimizer.rule, optimizer.learning_rate);
  for (const ParameterGroup& group : optimizer.groups) add(group.rule, group.learning_rate);
  if (groups_.size() > kMaxParameterGroups) {
    throw ConfigError(fmt::format("an optimizer can have {} groups beside its own rule, got {}",
                                  kMaxParameterGroups - 1, optimizer.groups.size()));
  }
  std::optional<AdamOptions> first;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    std::visit([i](auto& rule) { rule.group = static_cast<int>(i); }, groups_[i].rule);
    const auto* adam = std::get_if<AdamOptions>(&groups_[i].rule);
    if (adam == nullptr) continue;
    if (first && (first->beta1 != adam->beta1 || first->beta2 != adam->beta2)) {
      throw ConfigError("all groups under Adam must have the same beta1 and beta2");
    }
    first = *adam;
  }
}

void UpdatePlan::add_parts(const Graph& graph, const VariableLayout& layout, const Optimizer& optimizer) {
  for (const auto& [variable, group] : grouped_variables(graph, layout, optimizer)) add_part(*variable, group);
}

// Neighbours of one group are one slice, the gap between them included.
void UpdatePlan::add_part(const Variable& variable, int group) {
  const Shape& shape = variable.spec.shape;
  const std::int64_t begin = variable.offset, end = begin + shape.elements();
  if (is_muon(group)) {
    if (shape.rank() < 2) {
      throw ConfigError(
          fmt::format("Muon is for matrices, variable '{}' has shape {}", variable.name, shape.to_string()),
          "put it into a parameter group of another rule");
    }
    parts_.push_back({begin, end, group, shape});
  } else if (!parts_.empty() && parts_.back().group == group) {
    parts_.back().end = end;
  } else {
    parts_.push_back({begin, end, group, {}});
  }
}

bool UpdatePlan::is_muon(int group) const {
  return std::holds_alternative<MuonOptions>(groups_[static_cast<std::size_t>(group)].rule);
}

void UpdatePlan::set_rates(std::uint64_t step, StepScalars& scalars, float scale) const {
  const auto t = static_cast<double>(step + 1);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    scalars.learning_rates[i] = scale * groups_[i].learning_rate.at(step);
    if (!groups_[i].norms.scales(step)) scalars.kept_norms |= std::uint64_t{1} << i;
    const auto* adam = std::get_if<AdamOptions>(&groups_[i].rule);
    if (adam == nullptr) continue;
    scalars.beta1_correction = static_cast<float>(1.0 / (1.0 - std::pow(adam->beta1, t)));
    scalars.beta2_correction = static_cast<float>(1.0 / (1.0 - std::pow(adam->beta2, t)));
  }
  if (lookahead_) scalars.slow_share = lookahead_->share_at(step);
  if (average_) scalars.average_decay = average_->decay_at(step);
}

bool UpdatePlan::learns(const Variable& variable, std::uint64_t step) const {
  const auto part = std::ranges::find_if(parts_, [&](const Part& each) { return variable.offset < each.end; });
  return learns(part->group, step);
}

bool UpdatePlan::learns(int group, std::uint64_t step) const {
  const std::optional<std::uint64_t> end = groups_[static_cast<std::size_t>(group)].ends;
  return !end || step < *end;
}

// The gap between neighbours is 0 and counts for nothing.
std::vector<ArenaSlice> UpdatePlan::learning(std::uint64_t step) const {
  std::vector<ArenaSlice> slices;
  bool neighbour = false;
  for (const Part& part : parts_) {
    const bool learns_still = learns(part.group, step);
    if (learns_still && neighbour) slices.back().end = part.end;
    if (learns_still && !neighbour) slices.push_back({part.begin, part.end});
    neighbour = learns_still;
  }
  return slices;
}

std::vector<std::uint64_t> UpdatePlan::ends() const {
  std::set<std::uint64_t> ends;
  for (const Group& group : groups_) {
    if (group.ends) ends.insert(*group.ends);
  }
  return {ends.begin(), ends.end()};
}

void UpdatePlan::submit(Stream& stream, Kernels& kernels, const ReplicaArenas& arenas, std::int64_t begin,
                        std::int64_t end, const StepScalars* scalars) const {
  if (begin == end) return;
  const Parameters parameters(arenas.parameters, arenas.rounded);
  const auto adams = ranges<AdamOptions>(begin, end);
  if (!adams.empty()) {
    kernels.adam(stream, parameters, arenas.gradients, arenas.moments[0], arenas.moments[1], adams, scalars);
  }
  const auto sgds = ranges<SgdOptions>(begin, end);
  if (!sgds.empty()) {
    kernels.sgd(stream, parameters, arenas.gradients, arenas.moments[0], sgds, scalars);
  }
  if (end != elements_) return;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (is_muon(static_cast<int>(i))) submit_matrices(stream, kernels, arenas, static_cast<int>(i), scalars);
  }
}

template <typename Options>
std::vector<UpdateRange<Options>> UpdatePlan::ranges(std::int64_t begin, std::int64_t end) const {
  std::vector<UpdateRange<Options>> found;
  for (const Part& part : parts_) {
    const auto* options = std::get_if<Options>(&groups_[static_cast<std::size_t>(part.group)].rule);
    const std::int64_t from = std::max(part.begin, begin), to = std::min(part.end, end);
    if (options != nullptr && from < to) found.push_back({from, to, *options});
  }
  return found;
}

void UpdatePlan::submit_matrices(Stream& stream, Kernels& kernels, const ReplicaArenas& arenas, int group,
                                 const StepScalars* scalars) const {
  std::vector<MuonMatrix> matrices;
  for (const Part& part : parts_) {
    if (part.group != group) continue;
    const OptimizerViews views = arenas.slice(part.begin, part.end);
    matrices.push_back({.parameters = as_shape(views.parameters, part.shape),
                        .gradients = as_shape(views.gradients, part.shape),
                        .velocity = as_shape(views.moments[0], part.shape),
                        .rounded = as_shape(views.rounded, part.shape)});
  }
  if (matrices.empty()) return;
  kernels.muon(stream, matrices, std::get<MuonOptions>(groups_[static_cast<std::size_t>(group)].rule), scalars);
}

}  // namespace headrace
