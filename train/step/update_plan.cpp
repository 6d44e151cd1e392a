#include "headrace/train/step/update_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/device.h"
#include "headrace/train/model/variable_layout.h"

namespace headrace {
namespace {

// Checks a custom rule.
void check_own(const UpdateRule& rule) {
  const auto* own = std::get_if<CustomRule>(&rule);
  if (own == nullptr) return;
  if (own->function == nullptr) {
    throw ConfigError("a custom update rule has no function", "give it one: std::make_shared<MyRule>()");
  }
  const std::string name = own->function->name();
  for (const char* known : {"", "adam", "sgd", "muon"}) {
    if (name != known) continue;
    throw ConfigError(fmt::format("a custom update rule is called '{}'", name), "give it a name of its own");
  }
  std::set<std::string> names{"", "slow", "average"};
  for (const std::string& kept : own->function->state()) {
    if (names.insert(kept).second) continue;
    throw ConfigError(fmt::format("update rule '{}' keeps something called '{}'", name, kept),
                      "give each array of its state a name of its own, other than slow and average");
  }
}

// Returns the corrections of the update after `step` others.
std::array<float, 2> corrections_at(const UpdateRule& rule, std::uint64_t step) {
  if (const auto* own = std::get_if<CustomRule>(&rule)) return own->function->corrections(step);
  const auto* adam = std::get_if<AdamOptions>(&rule);
  if (adam == nullptr) return {};
  const auto t = static_cast<double>(step + 1);
  return {static_cast<float>(1.0 / (1.0 - std::pow(adam->beta1, t))),
          static_cast<float>(1.0 / (1.0 - std::pow(adam->beta2, t)))};
}

TensorView as_shape(const TensorView& flat, const Shape& shape) { return {flat.data, shape, flat.dtype}; }

}  // namespace

UpdatePlan::UpdatePlan(const Graph& graph, const VariableLayout& layout, const Optimizer& optimizer)
    : clip_(optimizer.clip),
      lookahead_(optimizer.lookahead),
      average_(optimizer.average),
      elements_(layout.trained_elements()) {
  check_optimizer(optimizer);
  add_groups(optimizer);
  add_parts(graph, layout, optimizer);
  for (std::size_t group = 0; group < groups_.size(); ++group) batch_matrices(static_cast<int>(group));
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
  for (const Group& group : groups_) check_own(group.rule);
  if (groups_.size() > kMaxParameterGroups) {
    throw ConfigError(fmt::format("an optimizer can have {} groups beside its own rule, got {}",
                                  kMaxParameterGroups - 1, optimizer.groups.size()));
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    std::visit([i](auto& rule) { rule.group = static_cast<int>(i); }, groups_[i].rule);
  }
}

void UpdatePlan::add_parts(const Graph& graph, const VariableLayout& layout, const Optimizer& optimizer) {
  for (const auto& [variable, described, group] : grouped_variables(graph, layout, optimizer)) {
    if (!variable->frozen) add_part(described, *variable, group);
  }
  if (parts_.empty()) throw ConfigError("all variables are frozen: there is nothing to train", "unfreeze() some");
}

// Returns whether only the padding of a cache line lies between them. It stays 0 under the library's rules; under
// custom rules nothing is known of it.
bool UpdatePlan::adjoins(const Part& before, std::int64_t begin) const {
  return begin - before.end < (own(before.group) == nullptr ? VariableLayout::kAlignment : 1);
}

const UpdateFunction* UpdatePlan::own(int group) const {
  const auto* found = std::get_if<CustomRule>(&rule(group));
  return found == nullptr ? nullptr : found->function.get();
}

bool UpdatePlan::takes_whole(int group) const {
  const UpdateFunction* function = own(group);
  return function == nullptr ? is_muon(group) : !function->elementwise();
}

// Merges neighbours of one group into one slice, including the gap between them.
void UpdatePlan::add_part(const TrainedVariable& described, const Variable& variable, int group) {
  const Shape& shape = variable.spec.shape;
  const std::int64_t begin = variable.offset, end = begin + shape.elements();
  if (const UpdateFunction* function = own(group)) function->check_variable(described);
  if (takes_whole(group)) {
    if (is_muon(group) && shape.rank() < 2) {
      throw ConfigError(
          fmt::format("Muon is for matrices, variable '{}' has shape {}", variable.name, shape.to_string()),
          "put it into a parameter group of another rule");
    }
    parts_.push_back({begin, end, group, shape});
  } else if (!parts_.empty() && parts_.back().group == group && adjoins(parts_.back(), begin)) {
    parts_.back().end = end;
  } else {
    parts_.push_back({begin, end, group, {}});
  }
}

void UpdatePlan::batch_matrices(int group) {
  const auto* options = std::get_if<MuonOptions>(&rule(group));
  if (options == nullptr) return;
  std::vector<Part> all;
  std::vector<Shape> shapes;
  for (const Part& part : parts_) {
    if (part.group != group) continue;
    all.push_back(part);
    shapes.push_back(part.shape);
  }
  auto next = all.begin();
  for (const std::size_t count : muon_batches(shapes, options->iterations)) {
    const auto end = next + static_cast<std::ptrdiff_t>(count);
    matrices_.emplace_back(next, end);
    next = end;
  }
}

void UpdatePlan::set_rates(std::uint64_t step, StepScalars& scalars, float scale) const {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    scalars.learning_rates[i] = scale * groups_[i].learning_rate.at(step);
    if (!groups_[i].norms.scales(step)) scalars.kept_norms |= std::uint64_t{1} << i;
    const std::array<float, 2> corrections = corrections_at(groups_[i].rule, step);
    std::ranges::copy(corrections, scalars.corrections[i]);
  }
  if (lookahead_) scalars.slow_share = lookahead_->share_at(step);
  if (average_) scalars.average_decay = average_->decay_at(step);
}

bool UpdatePlan::learns(const Variable& variable, std::uint64_t step) const {
  if (!variable.learns()) return false;
  const auto part = std::ranges::find_if(parts_, [&](const Part& each) { return variable.offset < each.end; });
  return learns(part->group, step);
}

bool UpdatePlan::learns(int group, std::uint64_t step) const {
  const std::optional<std::uint64_t> end = groups_[static_cast<std::size_t>(group)].ends;
  return !end || step < *end;
}

// The gap between neighbours is 0 and does not affect the result.
std::vector<ArenaSlice> UpdatePlan::learning(std::uint64_t step) const {
  std::vector<ArenaSlice> slices;
  bool neighbour = false;
  for (const Part& part : parts_) {
    const bool learns_still = learns(part.group, step);
    const bool joins = learns_still && neighbour && part.begin - slices.back().end < VariableLayout::kAlignment;
    if (joins) slices.back().end = part.end;
    if (learns_still && !joins) slices.push_back({part.begin, part.end});
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
    kernels.adam(stream, {parameters, arenas.gradients, arenas.moments[0], arenas.moments[1], adams, scalars});
  }
  const auto sgds = ranges<SgdOptions>(begin, end);
  if (!sgds.empty()) {
    kernels.sgd(stream, {parameters, arenas.gradients, arenas.moments[0], sgds, scalars});
  }
  for (const Part& part : parts_) {
    const Part run{std::max(part.begin, begin), std::min(part.end, end), part.group};
    if (own(part.group) != nullptr && !takes_whole(part.group) && run.begin < run.end) {
      submit_own(stream, kernels, arenas, run, scalars);
    }
  }
  for (const std::vector<Part>& batch : matrices_) {
    const std::int64_t last = batch.back().end;
    if (begin < last && last <= end) submit_matrices(stream, kernels, arenas, batch, scalars);
  }
  if (end != elements_) return;
  for (const Part& part : parts_) {
    if (own(part.group) != nullptr && takes_whole(part.group)) submit_own(stream, kernels, arenas, part, scalars);
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

UpdatePlan::Scratch UpdatePlan::scratch(bool host_memory) const {
  constexpr std::int64_t kLine = VariableLayout::kAlignment;
  Scratch scratch;
  for (const Part& part : parts_) {
    if (own(part.group) == nullptr) continue;
    const UpdateScratch wanted = own(part.group)->scratch(host_memory);
    scratch.elements = std::max(scratch.elements, (part.end - part.begin + kLine - 1) / kLine * kLine);
    scratch.arrays.device = std::max(scratch.arrays.device, wanted.device);
    scratch.arrays.pinned = std::max(scratch.arrays.pinned, wanted.pinned);
  }
  return scratch;
}

void UpdatePlan::submit_own(Stream& stream, Kernels& kernels, const ReplicaArenas& arenas, const Part& part,
                            const StepScalars* scalars) const {
  const UpdateFunction& function = *own(part.group);
  const Shape shape = part.shape.rank() > 0 ? part.shape : Shape{part.end - part.begin};
  const OptimizerViews views = arenas.slice(part.begin, part.end);
  UpdateCall call{.stream = stream,
                  .kernels = kernels,
                  .scalars = scalars,
                  .group = part.group,
                  .parameters = as_shape(views.parameters, shape),
                  .gradients = as_shape(views.gradients, shape)};
  for (std::size_t i = 0; i < function.state().size(); ++i)
    call.state.push_back(as_shape(views.moments[i], shape));
  arenas.lend_scratch(function.scratch(stream.device().info().host_memory), call);
  function.submit(call);
  if (views.rounded.defined()) kernels.convert(stream, {views.parameters, views.rounded});
}

void UpdatePlan::submit_matrices(Stream& stream, Kernels& kernels, const ReplicaArenas& arenas,
                                 const std::vector<Part>& batch, const StepScalars* scalars) const {
  std::vector<MuonMatrix> matrices;
  for (const Part& part : batch) {
    const OptimizerViews views = arenas.slice(part.begin, part.end);
    matrices.push_back({.parameters = as_shape(views.parameters, part.shape),
                        .gradients = as_shape(views.gradients, part.shape),
                        .velocity = as_shape(views.moments[0], part.shape),
                        .rounded = as_shape(views.rounded, part.shape)});
  }
  kernels.muon(stream, {matrices, std::get<MuonOptions>(rule(batch.front().group)), scalars});
}

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
