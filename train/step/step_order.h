// In which order a training loop of somebody else's may call a step's pieces.
#pragma once

#include <cstdint>

namespace headrace {

// Each call is a ConfigError where it would lose gradients or use old ones; else it is noted.
class StepOrder {
 public:
  explicit StepOrder(bool accumulates) : accumulates_(accumulates) {}

  // Whether the next batch is the first one of a step.
  bool begins() const noexcept { return done_ == Done::kNothing; }
  // A batch of so many examples over all replicas; returns how many the step has with it.
  std::int64_t forward(std::int64_t examples);
  void backward();
  void all_reduce();
  void apply_gradients();
  void discard_gradients() noexcept;
  // A whole step at once.
  void whole() const;

 private:
  enum class Done { kNothing, kForward, kBackward, kAllReduce };

  Done done_ = Done::kNothing;
  bool accumulates_;
  std::int64_t examples_ = 0, with_last_ = 0;  // of the batches whose gradients there are, and with the last one
};

}  // namespace headrace
