// A callback in a fit whose values a test chooses.
#pragma once

#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/fit/callbacks/monitor.h"

namespace headrace::test {

// Drives a callback through epochs that report these values as val_loss, without training; returns how many it
// took until the callback asked for the end, all of them where it did not.
inline std::size_t report_losses(const Callback& callback, Model& model, const std::vector<double>& losses) {
  FitControl control(model, {}, history_lists(model, /*validates=*/true, /*norms=*/false));
  if (callback.on_train_begin) callback.on_train_begin(control);
  std::size_t epoch = 0;
  while (epoch < losses.size() && !control.stop_requested()) {
    const int number = static_cast<int>(epoch);
    if (callback.on_epoch_begin) callback.on_epoch_begin(number, control);
    const EpochReport report{
        .epoch = number, .steps = 1, .planned_steps = 1, .loss = 2 * losses[epoch], .val_loss = losses[epoch]};
    if (callback.on_epoch_end) callback.on_epoch_end(report, control);
    ++epoch;
  }
  if (callback.on_train_end) callback.on_train_end(control);
  return epoch;
}

}  // namespace headrace::test
