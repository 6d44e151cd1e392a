// A training that another program recorded: its losses step by step, and its weights at the end.
#pragma once

#include <nlohmann/json.hpp>

#include "headrace/tests/support/data.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/support/test_devices.h"
#include "headrace/train/trainer.h"

namespace headrace::test {

// A file of this folder.
inline nlohmann::json read_expected(const std::string& name) {
  const std::filesystem::path path = source_file("tests/golden/" + name);
  std::ifstream file(path);
  EXPECT_TRUE(file) << path << " is missing";
  return nlohmann::json::parse(file);
}

inline void write_initial(const nlohmann::json& initial, Model& model) {
  for (const std::string& name : model.variable_names()) {
    model.write_variable(name, initial.at(name).get<std::vector<float>>());
  }
}

// Trains as many steps as there are losses.
inline void expect_run(const nlohmann::json& run, Model& model, Trainer& trainer) {
  for (const nlohmann::json& loss : run["losses"]) {
    trainer.reset_metrics();
    ASSERT_TRUE(trainer.step());
    EXPECT_NEAR(mean_loss(trainer.finish()), loss.get<double>(), slack() * (2e-6 + 2e-5 * loss.get<double>()));
  }
  for (const std::string& name : model.variable_names()) {
    const auto final = run["final"].at(name).get<std::vector<float>>();
    const std::vector<float> mine = model.read_variable(name);
    for (std::size_t i = 0; i < final.size(); ++i) {
      EXPECT_NEAR(mine[i], final[i], slack() * (1e-5F + 1e-4F * std::abs(final[i]))) << name << "[" << i << "]";
    }
  }
}

}  // namespace headrace::test
