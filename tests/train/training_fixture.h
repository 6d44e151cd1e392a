// What tests of the trainer begin with: toy data, small nets, models, checkpoints.
#pragma once

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/support/test_devices.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/strategy.h"

namespace headrace::test {

// Small data sets made in memory, for tests of the trainer.

template <typename T>
Array array_of(const std::string& name, const Shape& shape, const std::vector<T>& values) {
  Array array{.field = {.name = name, .dtype = dtype_of<T>(), .shape = shape}, .bytes = {}};
  array.bytes.resize(values.size() * sizeof(T));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

// Records given as they are; one label each.
inline Dataset labelled(const Shape& shape, const std::vector<float>& images,
                        const std::vector<std::int64_t>& labels) {
  return Dataset::from(
      in_memory("toy", labels.size(), {array_of("image", shape, images), array_of("label", Shape{}, labels)}));
}

// `count` records of `shape`: noise around a corner of the unit cube that depends on the label. Easy to learn.
inline Dataset blobs(std::int64_t count, const Shape& shape = Shape{8}, int classes = 4, std::uint64_t seed = 1) {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  Philox random({.seed = seed});
  for (std::int64_t i = 0; i < count; ++i) {
    labels.push_back(random.below(static_cast<std::uint32_t>(classes)));
    for (std::int64_t k = 0; k < shape.elements(); ++k) {
      const float corner = (k % classes) == labels.back() ? 1.0F : 0.0F;
      images.push_back(corner + 0.8F * (random.uniform() - 0.5F));
    }
  }
  return labelled(shape, images, labels);
}

// Small images in batches, of which 50 examples leave a short last one.
inline Dataset loop_data(std::int64_t batch = 16, std::int64_t examples = 50) {
  return blobs(examples, {6, 6, 2}).batch({.global_batch = batch});
}

// Devices, a silent strategy and small nets for a test.

// On the test devices (test_devices.h), or on others that are given.
struct Training {
  explicit Training(int replicas = test_replicas()) : Training(test_devices(replicas, DeviceNeed::kKernels)) {}
  explicit Training(DeviceGroup given) : devices(std::move(given)), strategy(devices, {.announce = false}) {}
  Training(const std::string& kind, int replicas)
      : Training(devices_of_kind(kind, replicas, DeviceNeed::kKernels)) {}

  DeviceGroup devices;
  Strategy strategy;
};

// Compiled with plain defaults but for the optimizer.
inline Model compiled(Strategy& strategy, const Net& net, const Optimizer& optimizer = adam(1e-2F),
                      std::uint64_t seed = 3) {
  Model model = strategy.build(net, {.seed = seed});
  model.compile({.optimizer = optimizer});
  return model;
}

// All of them, in the order of their names' list.
inline std::vector<std::vector<float>> variables_of(Model& model) {
  std::vector<std::vector<float>> variables;
  for (const std::string& name : model.variable_names()) variables.push_back(model.read_variable(name));
  return variables;
}

// One replica's sums of gradients so far, every trained variable at its offset. The step must be done.
inline std::vector<float> gradients_of(Model& model, Strategy& strategy, int replica = 0) {
  const ModelState& state = model.state();
  return download<float>(strategy.device(replica),
                         state.optimizer[static_cast<std::size_t>(replica)].gradients.data(),
                         static_cast<std::size_t>(state.layout.trained_elements()));
}

// Moves one value of one replica's copy, as a fault would.
inline void disturb(Model& model, Strategy& strategy, const std::string& variable, int replica, std::size_t at,
                    float by) {
  float* value = model.variable(variable, replica).as<float>() + at;
  upload(strategy.device(replica), value, download<float>(strategy.device(replica), value, 1).front() + by);
}

inline Node small_mlp(Graph& g) {
  return g.dense(g.dense(g.input("image", {8}), 16, {.activation = Activation::kRelu}), 4);
}

// With everything that could depend on the number of replicas but batch norm, which does.
inline Node small_cnn(Graph& g) {
  Node x = g.conv(g.input("image", {6, 6, 2}), 4, {.activation = Activation::kRelu});
  x = g.dropout(g.max_pool(x, 2), 0.25F);
  return g.dense(g.flatten(x), 4);
}

// Muon for weights, Adam for the head's, SGD for biases.
inline Optimizer grouped() {
  Optimizer optimizer = muon(Schedule::linear_decay({.peak = 0.1F, .total_steps = 40}));
  optimizer.groups = {{.takes = VariableRule::of_rank(1),
                       .rule = SgdOptions{.momentum = 0.9F, .weight_decay = 1e-3F, .nesterov = true},
                       .learning_rate = 0.05F},
                      {.takes = VariableRule::of_kind("dense"),
                       .rule = AdamOptions{.weight_decay = 1e-2F},
                       .learning_rate = 1e-2F}};
  return optimizer;
}

// The same with all that can be done around an update.
inline Optimizer with_all_around(Optimizer optimizer) {
  optimizer.clip = {.max_norm = 0.25F, .max_value = 0.2F};
  optimizer.lookahead = {.every = 5, .share = 0.4F};
  optimizer.average = {.decay = 0.8F, .warmup = 2};
  return optimizer;
}

inline Node norm_cnn(Graph& g) {
  Node x = g.conv(g.input("image", {6, 6, 2}), 4, {.bias = false});
  x = g.relu(g.batch_norm(x, {.momentum = 0.5F}));
  return g.dense(g.global_average_pool(x), 4);
}

// A model on two devices with data that it can learn.

class ModelTest : public ::testing::Test {
 protected:
  Model make(const Net& net = small_mlp, const Optimizer& optimizer = adam(1e-2F)) {
    return compiled(training_.strategy, net, optimizer);
  }

  Training training_{2};
  Dataset data_ = blobs(400).shuffle().batch({.global_batch = 20});
  Dataset fresh_ = blobs(200, {8}, 4, 99).batch({.global_batch = 64});
};

// What tests of checkpoints train on, and what they find in a folder.

inline const Dataset& kept_data() {
  static const Dataset data = blobs(40).shuffle().batch({.global_batch = 8});
  return data;
}

inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : list_directory(folder)) names.push_back(entry.path.filename().string());
  return names;
}

}  // namespace headrace::test
