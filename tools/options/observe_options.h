// The options of `headrace train` for extra output about a training, its checks, and its work around each update.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/train/fit_options.h"
#include "headrace/train/optimizers.h"

namespace CLI {
class App;
}

namespace headrace::tools {

struct ObserveOptions {
  std::string tensorboard;  // folder
  std::uint64_t tensorboard_steps = 0;
  int histograms = 0;
  std::string csv;
  bool gradient_norms = false;
  bool debug_nan = false;
  std::uint64_t mirror_check_every = 0;
  // For the optimizer; 0: the recipe's value.
  double clip_norm = 0, clip_value = 0;
  double average_decay = 0;

  void add_to(CLI::App& command);
  // Throws ConfigError for an option that needs another one, and for a folder that is a file. `reports`: the
  // command also writes lines of JSON.
  void check(bool reports) const;
  void apply(FitOptions& fit) const;
  void apply(Optimizer& optimizer) const;
  // Returns whether the test uses the average of the weights.
  bool averages() const noexcept { return average_decay > 0; }
};

}  // namespace headrace::tools
