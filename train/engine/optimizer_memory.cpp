#include "headrace/train/engine/optimizer_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/train/engine/model_state.h"
#include "headrace/train/engine/step_failure.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

enum class Kept { kFirstMoment, kSecondMoment, kSlow, kAverage };

struct NamedArena {
  Kept what;
  const char* name;
};
constexpr NamedArena kArenas[]{{Kept::kFirstMoment, "first_moment"},
                               {Kept::kSecondMoment, "second_moment"},
                               {Kept::kSlow, "slow"},
                               {Kept::kAverage, "average"}};

const Buffer& arena_of(const OptimizerMemory& memory, Kept what) {
  switch (what) {
    case Kept::kFirstMoment: return memory.moments[0];
    case Kept::kSecondMoment: return memory.moments[1];
    case Kept::kSlow: return memory.slow;
    case Kept::kAverage: return memory.average;
  }
  return memory.average;
}

TensorView place_of(const ModelState& model, Kept what, const Variable& variable, int replica) {
  const Buffer& arena = arena_of(model.optimizer.at(static_cast<std::size_t>(replica)), what);
  return arena.view(variable.spec.shape, DType::kF32, static_cast<std::size_t>(variable.offset) * sizeof(float));
}

std::string name_of(const Variable& variable, const NamedArena& arena) { return variable.name + ":" + arena.name; }

// Calls function(variable, arena) for each that the optimizer keeps.
template <typename Function>
void for_each_kept(const ModelState& model, const Function& function) {
  if (model.optimizer.empty()) return;
  for (const Variable& variable : model.layout.variables()) {
    if (variable.spec.role != VariableRole::kTrained) continue;
    for (const NamedArena& arena : kArenas) {
      if (arena_of(model.optimizer.front(), arena.what)) function(variable, arena);
    }
  }
}

bool is_second_weights(Kept what) { return what == Kept::kSlow || what == Kept::kAverage; }

std::vector<float> values_at(const ModelState& model, const TensorView& place, int replica) {
  std::vector<float> values(static_cast<std::size_t>(place.elements()));
  Stream& stream = model.strategy->stream(replica);
  stream.copy(values.data(), place.data, place.bytes());
  stream.synchronize();
  return values;
}

void write_everywhere(const ModelState& model, Kept what, const Variable& variable,
                      std::span<const float> values) {
  if (static_cast<std::int64_t>(values.size()) != variable.spec.shape.elements()) {
    throw ConfigError(fmt::format("variable '{}' has shape {}: {} values do not fit", variable.name,
                                  variable.spec.shape.to_string(), values.size()));
  }
  submit_and_wait(*model.strategy, [&] {
    for (int replica = 0; replica < model.strategy->replicas(); ++replica) {
      const TensorView place = place_of(model, what, variable, replica);
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
  for (int i = 0; i < optimizer.moments(); ++i)
    memory.moments[static_cast<std::size_t>(i)] = device.allocate(bytes);
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
  model.optimizer.clear();
  for (int r = 0; r < model.strategy->replicas(); ++r) model.optimizer.push_back(memory_for(model, optimizer, r));
  submit_and_wait(*model.strategy, [&] {
    for (int r = 0; r < model.strategy->replicas(); ++r) {
      const OptimizerMemory& memory = model.optimizer[static_cast<std::size_t>(r)];
      Stream& stream = model.strategy->stream(r);
      for (const Buffer* zeros : {&memory.gradients, &memory.moments[0], &memory.moments[1]}) zero(stream, *zeros);
      const TensorView parameters = model.variables.parameters(r);
      for (const Buffer* weights : {&memory.slow, &memory.average}) {
        if (*weights) stream.copy(weights->data(), parameters.data, parameters.bytes());
      }
    }
  });
}

std::vector<std::string> optimizer_variable_names(const ModelState& model) {
  std::vector<std::string> names;
  for_each_kept(model, [&](const Variable& variable, const NamedArena& arena) {
    names.push_back(name_of(variable, arena));
  });
  return names;
}

std::vector<NamedView> optimizer_views(const ModelState& model, int replica) {
  std::vector<NamedView> views;
  for_each_kept(model, [&](const Variable& variable, const NamedArena& arena) {
    views.push_back({.name = name_of(variable, arena), .view = place_of(model, arena.what, variable, replica)});
  });
  return views;
}

std::optional<std::vector<float>> read_optimizer_variable(const ModelState& model, const std::string& name,
                                                          int replica) {
  std::optional<std::vector<float>> values;
  for_each_kept(model, [&](const Variable& variable, const NamedArena& arena) {
    if (name_of(variable, arena) != name) return;
    values = values_at(model, place_of(model, arena.what, variable, replica), replica);
  });
  return values;
}

bool write_optimizer_variable(ModelState& model, const std::string& name, std::span<const float> values) {
  bool found = false;
  for_each_kept(model, [&](const Variable& variable, const NamedArena& arena) {
    if (name_of(variable, arena) != name) return;
    write_everywhere(model, arena.what, variable, values);
    found = true;
  });
  return found;
}

void write_second_weights(ModelState& model, const std::string& written, std::span<const float> values) {
  for_each_kept(model, [&](const Variable& variable, const NamedArena& arena) {
    if (variable.name == written && is_second_weights(arena.what)) {
      write_everywhere(model, arena.what, variable, values);
    }
  });
}

void check_second_weights(const ModelState& model) {
  for_each_kept(model, [&](const Variable& variable, const NamedArena& arena) {
    if (!is_second_weights(arena.what)) return;
    const auto hash_on = [&](int replica) {
      const std::vector<float> values = values_at(model, place_of(model, arena.what, variable, replica), replica);
      return xxh3(std::as_bytes(std::span(values)));
    };
    const std::uint64_t first = hash_on(0);
    for (int replica = 1; replica < model.strategy->replicas(); ++replica) {
      if (hash_on(replica) == first) continue;
      throw DeviceError(
          ErrorCode::kInternal,
          fmt::format("variable '{}' differs between replicas 0 and {}", name_of(variable, arena), replica),
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
  model.strategy->device(replica).kernels()->convert(model.strategy->stream(replica),
                                                     memory.average.view(shape, DType::kF32),
                                                     memory.rounded_average.view(shape, DType::kBF16));
}

}  // namespace headrace
