// Checks of the objects, options and callers of training and testing loops.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/devices/workers.h"
#include "headrace/train/trainer.h"

namespace headrace {

// Throws ConfigError if the model is of another strategy or not compiled; `what` names what needs it: "training".
void check_model(const Strategy& strategy, const Model& model, const char* what);
// Throws ConfigError if the loader's batches are in the memory of devices other than the strategy's, are divided
// among another number of shards, or are another part of the world's.
void check_loader(Strategy& strategy, const Loader& loader, int virtual_shards, const char* what);

// Returns what must be the same on all workers, by its reader's names: "--accumulate" and "2".
NamedValues same_values(const StepOptions& step);
// Adds a value under the reader's name of an option, "StepOptions::accumulate".
void add_value(NamedValues& values, std::string_view option, std::string value);

// Runs the two checks above. Also throws ConfigError if options do not fit the loader or the model's layers, and
// WorkersDiffer if workers have other options: all of them make the call.
void check_training(Strategy& strategy, const Model& model, const Loader& loader, const TrainerOptions& options);

// Enforces the order in which a custom training loop may call a step's parts. Each call throws ConfigError if it
// would lose gradients or use old ones, and is recorded otherwise.
class StepOrder {
 public:
  explicit StepOrder(bool accumulates) : accumulates_(accumulates) {}

  // Returns whether the next batch is the first of a step.
  bool begins() const noexcept { return done_ == Done::kNothing; }
  // Records a batch of `examples` over all replicas; returns the step's examples up to its end.
  std::int64_t forward(std::int64_t examples);
  void backward();
  void all_reduce();
  void apply_gradients();
  void discard_gradients() noexcept;
  // Checks that a whole step may begin.
  void whole() const;

 private:
  enum class Done { kNothing, kForward, kBackward, kAllReduce };

  Done done_ = Done::kNothing;
  bool accumulates_;
  std::int64_t examples_ = 0;   // of the batches with gradients
  std::int64_t with_last_ = 0;  // with the last batch
};

}  // namespace headrace
