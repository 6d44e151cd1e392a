// What an optimizer keeps from step to step: arenas on each replica, laid out as the parameters'.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/buffer.h"
#include "headrace/devices/tensor.h"
#include "headrace/train/optimizers.h"

namespace headrace {

struct ModelState;

// One replica's. What the optimizer has no use for is empty.
struct OptimizerMemory {
  Buffer gradients = {};
  std::vector<Buffer> moments = {};           // Optimizer::moments()
  Buffer slow = {};                           // Lookahead's weights
  Buffer average = {}, rounded_average = {};  // WeightAverage's, and a bf16 copy where parameters have one
};

// For `optimizer`, on every replica: moments of 0, second sets of weights that equal the first. Waits.
void create_optimizer_memory(ModelState& model, const Optimizer& optimizer);

// As names, of each trained variable: "conv/weights:first_moment", ":second_moment" or what a rule of one's own
// calls its state, ":slow", ":average". Together with the variables and the step they are all that training
// depends on.
std::vector<std::string> optimizer_variable_names(const ModelState& model);
// Where they lie in a replica's memory, in the same order.
struct NamedView {
  std::string name;
  TensorView view;
};
std::vector<NamedView> optimizer_views(const ModelState& model, int replica);
// Nothing where there is no such optimizer variable.
std::optional<std::vector<float>> read_optimizer_variable(const ModelState& model, const std::string& name,
                                                          int replica);
bool write_optimizer_variable(ModelState& model, const std::string& name, std::span<const float> values);

// A variable was written: the second sets of weights get its values too, where it is a trained one.
void write_second_weights(ModelState& model, const std::string& variable, std::span<const float> values);
// DeviceError naming the first variable of which a replica's second weights differ from the first replica's.
void check_second_weights(const ModelState& model);

// ConfigError where the compiled optimizer keeps no average.
void require_average(const ModelState& model);
// Brings the average's bf16 copy, where one is kept, up to date, in the replica's stream.
void round_average(const ModelState& model, int replica);

}  // namespace headrace
