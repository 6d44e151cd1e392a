#include "headrace/train/step/step_order.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace {

std::int64_t StepOrder::forward(std::int64_t examples) {
  if (done_ == Done::kAllReduce) {
    throw ConfigError("the gradients were summed and not used", "call apply_gradients() before the next batch");
  }
  if (done_ == Done::kBackward && !accumulates_) {
    throw ConfigError(
        "a second batch before all_reduce() would overwrite the gradients",
        joined({advice("set {} to the batches of a step: they are then added", named("StepOptions::accumulate")),
                "call discard_gradients()"},
               "; or "));
  }
  done_ = Done::kForward;
  with_last_ = examples_ + examples;
  return with_last_;
}

void StepOrder::backward() {
  if (done_ != Done::kForward) throw ConfigError("backward() needs a forward() before it, one each");
  done_ = Done::kBackward;
  examples_ = with_last_;
}

void StepOrder::all_reduce() {
  if (done_ == Done::kForward) throw ConfigError("all_reduce() after a forward() without its backward()");
  if (done_ != Done::kBackward) throw ConfigError("all_reduce() without gradients", "call gradients() first");
  done_ = Done::kAllReduce;
}

void StepOrder::apply_gradients() {
  if (done_ != Done::kAllReduce) {
    throw ConfigError(
        "apply_gradients() before all_reduce(): the replicas' gradients are not summed yet, and "
        "their weights would part",
        "call all_reduce() first, with one replica too");
  }
  discard_gradients();
}

void StepOrder::discard_gradients() noexcept {
  done_ = Done::kNothing;
  examples_ = 0;
}

void StepOrder::whole() const {
  if (done_ == Done::kNothing || (done_ == Done::kForward && examples_ == 0)) return;
  throw ConfigError("step() while the gradients of batches before it are not used yet",
                    "call all_reduce() and apply_gradients() first");
}

}  // namespace headrace
