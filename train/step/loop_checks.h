// What training and testing loops require of their objects, their options and their callers.
#pragma once

#include <cstdint>

#include "headrace/train/trainer.h"

namespace headrace {

// ConfigError for a model of another strategy or one that is not compiled: `what` needs it, "training".
void check_model(const Strategy& strategy, const Model& model, const char* what);
// ConfigError for a loader whose batches are in other devices' memory than the strategy's, are divided among
// another number of shards, or are another part of the world's.
void check_loader(Strategy& strategy, const Loader& loader, int virtual_shards, const char* what);

// Runs the two above. ConfigError also for options that do not fit the loader or the model's layers.
void check_training(Strategy& strategy, const Model& model, const Loader& loader, const TrainerOptions& options);

// The order in which a custom training loop may call a step's parts. Each call throws a ConfigError where it would
// lose gradients or use old ones, and is noted otherwise.
class StepOrder {
 public:
  explicit StepOrder(bool accumulates) : accumulates_(accumulates) {}

  // Returns whether the next batch is the first of a step.
  bool begins() const noexcept { return done_ == Done::kNothing; }
  // Notes a batch of so many examples over all replicas; returns the step's examples up to its end.
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
