// What `headrace train` writes about a training beside its results, what it looks for, and what it does around
// each update.
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
  // Of the optimizer; 0: as the recipe has it.
  double clip_norm = 0, clip_value = 0;
  double average_decay = 0;

  void add_to(CLI::App& command);
  // ConfigError for an option that needs another one, and for a folder that is a file. `reports`: the command
  // writes lines of JSON, too.
  void check(bool reports) const;
  void apply(FitOptions& fit) const;
  void apply(Optimizer& optimizer) const;
  // Whether the test is of the average of the weights.
  bool averages() const noexcept { return average_decay > 0; }
};

}  // namespace headrace::tools
