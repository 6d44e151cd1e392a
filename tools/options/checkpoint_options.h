// The options of checkpoints during a training, and of ending it in time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "headrace/tools/recipes/recipe.h"

namespace CLI {
class App;
}

namespace headrace::tools {

// --checkpoint-dir, --checkpoint-every, --checkpoint-keep, --checkpoint-best, --checkpoint-best-mode, --resume and
// --record.
struct CheckpointFlags {
  std::string folder = {};
  std::uint64_t every = 0;  // 0: every epoch
  int keep = 3;
  std::string best = {}, best_mode = "auto";
  bool resume = false;
  std::string record = {};

  void add_to(CLI::App& command);
  bool on() const noexcept { return !folder.empty() || !record.empty(); }
  // Throws ConfigError if the folder holds another training.
  void check() const;
  void apply(const Recipe& recipe, FitOptions& fit) const;

 private:
  Better better() const;
};

}  // namespace headrace::tools
