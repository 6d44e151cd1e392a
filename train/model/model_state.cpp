#include "headrace/train/model/model_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/device.h"
#include "headrace/train/model/submission.h"
#include "headrace/train/model/variable_layout.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

std::size_t arena_bytes(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); }

std::uint64_t hash_of(const std::vector<float>& values) { return xxh3(std::as_bytes(std::span(values))); }

TensorView arena(const Buffer& buffer, std::int64_t elements, DType dtype = DType::kF32) {
  return elements > 0 && buffer ? buffer.view(Shape{elements}, dtype) : TensorView{};
}

// Does not compare NaNs: devices write different ones.
bool is_rounded(const std::vector<float>& values, const std::vector<BFloat16>& rounded) {
  return std::ranges::equal(values, rounded, [](float value, BFloat16 copy) {
    return std::isnan(value) || nearest_bf16(value).bits == copy.bits;
  });
}

void clear(Stream& stream, const Buffer& buffer) {
  if (buffer) stream.fill(buffer.data(), 0, buffer.size());
}

// Tests for an exponent of all ones, without a branch per element.
bool all_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7F800000;
  std::uint32_t found = 0;
  for (const float value : values)
    found |= (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
  return found == 0;
}

}  // namespace

MirroredVariables::MirroredVariables(Strategy& strategy, const VariableLayout& layout, std::uint64_t seed)
    : strategy_(&strategy), layout_(&layout) {
  for (int replica = 0; replica < strategy.local_replicas(); ++replica) {
    Device& device = strategy.device(replica);
    copies_.push_back({.parameters = device.allocate(arena_bytes(layout.trained_elements())),
                       .state = device.allocate(arena_bytes(layout.state_elements()))});
  }
  std::vector<std::vector<float>> values;  // until the copies are done
  submit_and_wait(*strategy_, [&] {
    for (int replica = 0; replica < strategy.local_replicas(); ++replica) {
      clear(strategy.stream(replica), copies_[static_cast<std::size_t>(replica)].parameters);
      clear(strategy.stream(replica), copies_[static_cast<std::size_t>(replica)].state);
    }
    for (const Variable& variable : layout.variables()) {
      values.push_back(initial_values(variable.spec, seed, values.size()));
      const TensorView place = view(variable, 0);
      strategy.stream(0).copy(place.data, values.back().data(), place.bytes());
    }
    broadcast();
  });
}

void MirroredVariables::broadcast() {
  for (int replica = 0; replica < strategy_->local_replicas(); ++replica) {
    for (const TensorView& whole : {parameters(replica), state(replica)}) {
      if (whole.defined()) strategy_->collective().broadcast(replica, 0, whole, strategy_->stream(replica));
    }
  }
}

TensorView MirroredVariables::parameters(int replica) const {
  return arena(copies_.at(static_cast<std::size_t>(replica)).parameters, layout_->trained_elements());
}

TensorView MirroredVariables::state(int replica) const {
  return arena(copies_.at(static_cast<std::size_t>(replica)).state, layout_->state_elements());
}

TensorView MirroredVariables::view(const Variable& variable, int replica) const {
  const TensorView whole = variable.spec.role == VariableRole::kTrained ? parameters(replica) : state(replica);
  return {whole.as<float>() + variable.offset, variable.spec.shape, DType::kF32};
}

void MirroredVariables::keep_rounded(bool kept) {
  submit_and_wait(*strategy_, [&] {
    for (int replica = 0; replica < strategy_->local_replicas(); ++replica) {
      Copy& copy = copies_[static_cast<std::size_t>(replica)];
      Device& device = strategy_->device(replica);
      const auto place = [&](const Buffer& arena) {
        return kept && arena ? device.allocate(arena.size() / sizeof(float) * sizeof(BFloat16)) : Buffer{};
      };
      copy.rounded_parameters = place(copy.parameters);
      copy.rounded_state = place(copy.state);
      round(replica, parameters(replica), rounded_parameters(replica));
      round(replica, state(replica), rounded_state(replica));
    }
  });
}

void MirroredVariables::round_again() {
  submit_and_wait(*strategy_, [&] {
    for (int replica = 0; replica < strategy_->local_replicas(); ++replica) {
      round(replica, parameters(replica), rounded_parameters(replica));
      round(replica, state(replica), rounded_state(replica));
    }
  });
}

TensorView MirroredVariables::rounded_parameters(int replica) const {
  const Copy& copy = copies_.at(static_cast<std::size_t>(replica));
  return arena(copy.rounded_parameters, layout_->trained_elements(), DType::kBF16);
}

TensorView MirroredVariables::rounded_state(int replica) const {
  return arena(copies_.at(static_cast<std::size_t>(replica)).rounded_state, layout_->state_elements(),
               DType::kBF16);
}

TensorView MirroredVariables::rounded_view(const Variable& variable, int replica) const {
  const bool trained = variable.spec.role == VariableRole::kTrained;
  const TensorView whole = trained ? rounded_parameters(replica) : rounded_state(replica);
  if (!whole.defined() || !variable.spec.product_weights) return {};
  return {whole.as<BFloat16>() + variable.offset, variable.spec.shape, DType::kBF16};
}

void MirroredVariables::round(int replica, const TensorView& values, const TensorView& rounded) const {
  if (!rounded.defined()) return;
  strategy_->device(replica).kernels()->convert(strategy_->stream(replica), {values, rounded});
}

std::vector<float> MirroredVariables::read(const Variable& variable, int replica) const {
  const TensorView place = view(variable, replica);
  std::vector<float> values(static_cast<std::size_t>(place.elements()));
  strategy_->stream(replica).copy(values.data(), place.data, place.bytes());
  strategy_->stream(replica).synchronize();
  return values;
}

void MirroredVariables::write(const Variable& variable, std::span<const float> values) {
  if (static_cast<std::int64_t>(values.size()) != variable.spec.shape.elements()) {
    throw ConfigError(fmt::format("variable '{}' has shape {}: {} values do not fit", variable.name,
                                  variable.spec.shape.to_string(), values.size()));
  }
  submit_and_wait(*strategy_, [&] {
    for (int replica = 0; replica < strategy_->local_replicas(); ++replica) {
      const TensorView place = view(variable, replica);
      strategy_->stream(replica).copy(place.data, values.data(), place.bytes());
      round(replica, place, rounded_view(variable, replica));
    }
  });
}

std::string MirroredVariables::sha256() const {
  Sha256 hash;
  for (const Variable& variable : layout_->variables()) {
    hash.update(variable.name).update(static_cast<std::uint64_t>(variable.spec.shape.elements()));
    const std::vector<float> values = read(variable, 0);
    hash.update(std::as_bytes(std::span(values)));
  }
  return hash.finish_hex();
}

void MirroredVariables::check() const {
  for (const Variable& variable : layout_->variables()) {
    const std::uint64_t first = hash_of(read(variable, 0));
    for (int replica = 0; replica < strategy_->local_replicas(); ++replica) check_rounded(variable, replica);
    for (int replica = 1; replica < strategy_->local_replicas(); ++replica) {
      const std::uint64_t other = hash_of(read(variable, replica));
      if (other == first) continue;
      throw DeviceError(ErrorCode::kInternal,
                        fmt::format("variable '{}' differs between replicas 0 and {} (hashes {} and {})",
                                    variable.name, replica, to_hex(first), to_hex(other)),
                        strategy_->device(replica).info().name,
                        "something wrote to one replica's copy alone, or its memory is faulty");
    }
  }
  if (strategy_->workers()) strategy_->workers()->require_equal("variables", sha256());
}

void MirroredVariables::check_rounded(const Variable& variable, int replica) const {
  const TensorView copy = rounded_view(variable, replica);
  if (!copy.defined()) return;
  std::vector<BFloat16> rounded(static_cast<std::size_t>(copy.elements()));
  strategy_->stream(replica).copy(rounded.data(), copy.data, copy.bytes());
  if (is_rounded(read(variable, replica), rounded)) return;
  throw DeviceError(ErrorCode::kInternal,
                    fmt::format("the bf16 copy of variable '{}' is not what it rounds to", variable.name),
                    strategy_->device(replica).info().name,
                    "write variables with Model::write_variable(), which writes the copy too");
}

// Called after every epoch while a device waits: reads everything once unless something is wrong.
void MirroredVariables::check_finite() {
  if (!std::ranges::all_of(on_host(), all_finite)) name_what_is_not_finite();
}

std::vector<std::span<const float>> MirroredVariables::on_host() {
  Device& device = strategy_->device(0);
  Stream& stream = strategy_->stream(0);
  const auto bytes = [](const TensorView& arena) { return arena.defined() ? arena.bytes() : 0; };
  const bool in_place = device.info().host_memory;
  if (!in_place && !copy_) copy_ = device.allocate_pinned(bytes(parameters(0)) + bytes(state(0)));
  std::byte* at = copy_.data();
  std::vector<std::span<const float>> arenas;
  for (const TensorView& arena : {parameters(0), state(0)}) {
    if (!arena.defined()) continue;
    const float* values = in_place ? arena.as<const float>() : reinterpret_cast<const float*>(at);
    arenas.emplace_back(values, static_cast<std::size_t>(arena.elements()));
    if (in_place) continue;
    stream.copy(at, arena.data, arena.bytes());
    at += arena.bytes();
  }
  stream.synchronize();
  return arenas;
}

// Throws nothing if only the gaps between variables are affected.
void MirroredVariables::name_what_is_not_finite() const {
  for (const Variable& variable : layout_->variables()) {
    const std::vector<float> values = read(variable, 0);
    const auto found = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
    if (found == values.end()) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("variable '{}' holds {} at element {}", variable.name, *found, found - values.begin()),
                "lower the learning rate, or look for inputs that are not finite");
  }
}

ModelState::ModelState(Strategy& owner, std::unique_ptr<const Graph> net, std::uint64_t seed)
    : strategy(&owner), graph(std::move(net)), layout(*graph), variables(owner, layout, seed) {}

const CompileOptions& ModelState::require_compiled(const char* what) const {
  if (compiled) return *compiled;
  throw ConfigError(std::string(what) + " needs a compiled model", "call model.compile({...}) first");
}

void ModelState::require_compilation(std::uint64_t compilation, const std::string& what) const {
  if (compilation == compilations) return;
  throw ConfigError("the model was compiled since this " + what + " was prepared", "prepare it after compile()");
}

void ModelState::require_frozen_as_compiled() const {
  for (const Variable& variable : layout.variables()) {
    if (variable.frozen == frozen.contains(variable.name)) continue;
    throw ConfigError("variable '" + variable.name + "' was " + (variable.frozen ? "unfrozen" : "frozen") +
                          " after compile(), which decides what is trained",
                      "call model.compile({...}) again");
  }
}

std::vector<double> ModelState::learning_rates() const {
  const Optimizer& rule = require_compiled("a learning rate").optimizer;
  std::vector<double> rates{learning_rate_scale * rule.learning_rate.at(step)};
  for (const ParameterGroup& group : rule.groups) {
    rates.push_back(learning_rate_scale * group.learning_rate.at(step));
  }
  return rates;
}

}  // namespace headrace
