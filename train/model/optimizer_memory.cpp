#include "headrace/train/model/optimizer_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/model/submission.h"
#include "headrace/train/model/variable_layout.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

// One of the arenas, and the name of a variable's part of it.
struct KeptArena {
  enum class What { kMoment, kSlow, kAverage };

  What what;
  std::size_t moment = 0;  // of kMoment
  std::string name;        // "conv/weights:first_moment"

  bool is_second_weights() const noexcept { return what != What::kMoment; }
};

const Buffer& arena_of(const OptimizerMemory& memory, const KeptArena& kept) {
  if (kept.what == KeptArena::What::kMoment) return memory.moments.at(kept.moment);
  return kept.what == KeptArena::What::kSlow ? memory.slow : memory.average;
}

TensorView place_of(const ModelState& model, const KeptArena& kept, const Variable& variable, int replica) {
  const Buffer& arena = arena_of(model.optimizer.at(static_cast<std::size_t>(replica)), kept);
  return arena.view(variable.spec.shape, DType::kF32, static_cast<std::size_t>(variable.offset) * sizeof(float));
}

// Calls function(variable, kept) for each variable and arena that the optimizer keeps.
template <typename Function>
void for_each_kept(const ModelState& model, const Function& function) {
  if (model.optimizer.empty()) return;
  const OptimizerMemory& memory = model.optimizer.front();
  const std::vector<Variable>& variables = model.layout.variables();
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (variables[v].spec.role != VariableRole::kTrained) continue;
    const std::vector<std::string>& moments = model.moment_names[v];
    const auto call = [&](KeptArena::What what, const std::string& name, std::size_t moment = 0) {
      function(variables[v], KeptArena{.what = what, .moment = moment, .name = variables[v].name + ":" + name});
    };
    for (std::size_t i = 0; i < moments.size(); ++i) call(KeptArena::What::kMoment, moments[i], i);
    if (memory.slow) call(KeptArena::What::kSlow, "slow");
    if (memory.average) call(KeptArena::What::kAverage, "average");
  }
}

// Variables under any of the library's rules have as many moments as the largest of these rules keeps.
std::vector<std::vector<std::string>> moment_names_of(const ModelState& model, const Optimizer& optimizer) {
  Optimizer theirs = optimizer;
  std::erase_if(theirs.groups, [](const auto& group) { return std::holds_alternative<CustomRule>(group.rule); });
  if (std::holds_alternative<CustomRule>(theirs.rule) && !theirs.groups.empty())
    theirs.rule = theirs.groups[0].rule;
  std::vector<std::string> names{"first_moment", "second_moment"};
  names.resize(std::min(names.size(), static_cast<std::size_t>(theirs.moments())));
  std::vector<std::vector<std::string>> all(model.layout.variables().size(), names);
  for (const GroupedVariable& each : grouped_variables(*model.graph, model.layout, optimizer)) {
    const auto group = static_cast<std::size_t>(each.group);
    const UpdateRule& rule = group == 0 ? optimizer.rule : optimizer.groups[group - 1].rule;
    const auto at = static_cast<std::size_t>(each.variable - model.layout.variables().data());
    if (const auto* own = std::get_if<CustomRule>(&rule)) all[at] = own->function->state();
  }
  return all;
}

std::vector<float> values_at(const ModelState& model, const TensorView& place, int replica) {
  std::vector<float> values(static_cast<std::size_t>(place.elements()));
  Stream& stream = model.strategy->stream(replica);
  stream.copy(values.data(), place.data, place.bytes());
  stream.synchronize();
  return values;
}

void write_everywhere(const ModelState& model, const KeptArena& kept, const Variable& variable,
                      std::span<const float> values) {
  if (static_cast<std::int64_t>(values.size()) != variable.spec.shape.elements()) {
    throw ConfigError(fmt::format("variable '{}' has shape {}: {} values do not fit", variable.name,
                                  variable.spec.shape.to_string(), values.size()));
  }
  submit_and_wait(*model.strategy, [&] {
    for (int replica = 0; replica < model.strategy->local_replicas(); ++replica) {
      const TensorView place = place_of(model, kept, variable, replica);
      model.strategy->stream(replica).copy(place.data, values.data(), place.bytes());
    }
  });
}

void zero(Stream& stream, const Buffer& buffer) {
  if (buffer) stream.fill(buffer.data(), 0, buffer.size());
}

OptimizerMemory memory_for(const ModelState& model, const Optimizer& optimizer, int replica) {
  Device& device = model.strategy->device(replica);
  const std::size_t bytes = model.variables.parameters(replica).bytes();
  OptimizerMemory memory{.gradients = device.allocate(bytes)};
  for (int i = 0; i < optimizer.moments(); ++i) memory.moments.push_back(device.allocate(bytes));
  if (optimizer.lookahead) memory.slow = device.allocate(bytes);
  if (!optimizer.average) return memory;
  memory.average = device.allocate(bytes);
  if (model.variables.rounded_parameters(replica).defined()) {
    memory.rounded_average = device.allocate(bytes / sizeof(float) * sizeof(BFloat16));
  }
  return memory;
}

}  // namespace

void create_optimizer_memory(ModelState& model, const Optimizer& optimizer) {
  model.moment_names = moment_names_of(model, optimizer);
  model.optimizer.clear();
  for (int r = 0; r < model.strategy->local_replicas(); ++r)
    model.optimizer.push_back(memory_for(model, optimizer, r));
  submit_and_wait(*model.strategy, [&] {
    for (int r = 0; r < model.strategy->local_replicas(); ++r) {
      const OptimizerMemory& memory = model.optimizer[static_cast<std::size_t>(r)];
      Stream& stream = model.strategy->stream(r);
      zero(stream, memory.gradients);
      for (const Buffer& moment : memory.moments) zero(stream, moment);
      const TensorView parameters = model.variables.parameters(r);
      for (const Buffer* weights : {&memory.slow, &memory.average}) {
        if (*weights) stream.copy(weights->data(), parameters.data, parameters.bytes());
      }
    }
  });
}

std::vector<std::string> optimizer_variable_names(const ModelState& model) {
  std::vector<std::string> names;
  for_each_kept(model, [&](const Variable&, const KeptArena& kept) { names.push_back(kept.name); });
  return names;
}

std::vector<NamedView> optimizer_views(const ModelState& model, int replica) {
  std::vector<NamedView> views;
  for_each_kept(model, [&](const Variable& variable, const KeptArena& kept) {
    views.push_back({.name = kept.name, .view = place_of(model, kept, variable, replica)});
  });
  return views;
}

std::optional<std::vector<float>> read_optimizer_variable(const ModelState& model, const std::string& name,
                                                          int replica) {
  std::optional<std::vector<float>> values;
  for_each_kept(model, [&](const Variable& variable, const KeptArena& kept) {
    if (kept.name != name) return;
    values = values_at(model, place_of(model, kept, variable, replica), replica);
  });
  return values;
}

bool write_optimizer_variable(ModelState& model, const std::string& name, std::span<const float> values) {
  bool found = false;
  for_each_kept(model, [&](const Variable& variable, const KeptArena& kept) {
    if (kept.name != name) return;
    write_everywhere(model, kept, variable, values);
    found = true;
  });
  return found;
}

void write_second_weights(ModelState& model, const std::string& written, std::span<const float> values) {
  for_each_kept(model, [&](const Variable& variable, const KeptArena& kept) {
    if (variable.name == written && kept.is_second_weights()) {
      write_everywhere(model, kept, variable, values);
    }
  });
}

void check_second_weights(const ModelState& model) {
  for_each_kept(model, [&](const Variable& variable, const KeptArena& kept) {
    if (!kept.is_second_weights()) return;
    const auto hash_on = [&](int replica) {
      const std::vector<float> values = values_at(model, place_of(model, kept, variable, replica), replica);
      return xxh3(std::as_bytes(std::span(values)));
    };
    const std::uint64_t first = hash_on(0);
    for (int replica = 1; replica < model.strategy->local_replicas(); ++replica) {
      if (hash_on(replica) == first) continue;
      throw DeviceError(ErrorCode::kInternal,
                        fmt::format("variable '{}' differs between replicas 0 and {}", kept.name, replica),
                        model.strategy->device(replica).info().name,
                        "something wrote to one replica's copy alone, or its memory is faulty");
    }
  });
}

void require_average(const ModelState& model) {
  if (model.compiled && model.compiled->optimizer.average) return;
  throw ConfigError("the model's optimizer keeps no average of the weights",
                    "compile the model with an optimizer that has .average");
}

void round_average(const ModelState& model, int replica) {
  const OptimizerMemory& memory = model.optimizer.at(static_cast<std::size_t>(replica));
  if (!memory.rounded_average) return;
  const Shape shape{model.layout.trained_elements()};
  model.strategy->device(replica).kernels()->convert(
      model.strategy->stream(replica),
      {memory.average.view(shape, DType::kF32), memory.rounded_average.view(shape, DType::kBF16)});
}

}  // namespace headrace
