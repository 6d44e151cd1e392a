// Creates, names, reads and writes the optimizer's memory (OptimizerMemory).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/tensor.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/optimizers.h"

namespace headrace {

// Creates memory for `optimizer` on every replica: moments of 0, second sets of weights equal to the first. Waits.
void create_optimizer_memory(ModelState& model, const Optimizer& optimizer);

// Returns the names of each trained variable's memory: "conv/weights:first_moment", ":second_moment" or a custom
// rule's names of its state, ":slow", ":average". Together with the variables and the step they are all that
// training depends on.
std::vector<std::string> optimizer_variable_names(const ModelState& model);
// Their places in a replica's memory, in the same order.
struct NamedView {
  std::string name;
  TensorView view;
};
std::vector<NamedView> optimizer_views(const ModelState& model, int replica);
// Return std::nullopt or false if there is no such optimizer variable.
std::optional<std::vector<float>> read_optimizer_variable(const ModelState& model, const std::string& name,
                                                          int replica);
bool write_optimizer_variable(ModelState& model, const std::string& name, std::span<const float> values);

// Writes a trained variable's new values to its second sets of weights too; ignores other variables.
void write_second_weights(ModelState& model, const std::string& variable, std::span<const float> values);
// Throws DeviceError naming the first variable whose second weights on a replica differ from the first replica's.
void check_second_weights(const ModelState& model);

// Throws ConfigError if the compiled optimizer keeps no average.
void require_average(const ModelState& model);
// Updates the average's bf16 copy, if one is kept, in the replica's stream.
void round_average(const ModelState& model, int replica);

}  // namespace headrace
