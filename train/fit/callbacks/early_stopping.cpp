// Ends a fit that no longer improves.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "headrace/devices/base/option_text.h"
#include "headrace/train/fit/callbacks/callback_state.h"
#include "headrace/train/fit/callbacks/monitor.h"
#include "headrace/train/fit/callbacks/saved_variables.h"
#include "headrace/train/model.h"

namespace headrace {
namespace {

class EarlyStopping {
 public:
  explicit EarlyStopping(const EarlyStoppingOptions& options)
      : options_(options),
        monitor_("early_stopping", options.monitor, "EarlyStoppingOptions::mode", options.mode,
                 options.min_delta) {
    if (options.patience < 0) {
      throw ConfigError(fmt::format("early_stopping: the patience is {}", options.patience),
                        "give 0 or more epochs");
    }
  }

  void begin(FitControl& control) {
    monitor_.begin(control.lists());
    if (std::exchange(restored_, false)) {
      if (waited_ >= std::max(1, options_.patience)) control.request_stop();  // as it had requested
      return;
    }
    monitor_.best.reset();
    waited_ = 0;
    saved_ = {};
  }

  void end_epoch(const EpochReport& report, FitControl& control) {
    const std::optional<double> value = monitor_.value(report);
    if (!value) return;
    if (monitor_.improves(*value)) {
      waited_ = 0;
      if (options_.restore_best_weights) saved_.take(control.model());
    } else if (++waited_ >= std::max(1, options_.patience)) {
      control.request_stop();
    }
  }

  void end(FitControl& control) const { saved_.give_back(control.model()); }

  std::string save() const {
    return nlohmann::json{
        {"best", optional_number(monitor_.best)}, {"waited", waited_}, {"variables", saved_.to_json()}}
        .dump();
  }

  void restore(const std::string& text) {
    read_callback_state("early_stopping", text, [&](const nlohmann::json& state) {
      monitor_.best = optional_number(state.at("best"));
      waited_ = state.at("waited").get<int>();
      saved_ = SavedVariables::from_json(state.at("variables"));
    });
    restored_ = true;
  }

 private:
  EarlyStoppingOptions options_;
  Monitor monitor_;
  int waited_ = 0;  // epochs since the best
  SavedVariables saved_;
  bool restored_ = false;  // since the last fit
};

}  // namespace

Callback early_stopping(const EarlyStoppingOptions& options) {
  const auto self = std::make_shared<EarlyStopping>(options);
  return {
      .name = "early_stopping",
      .on_train_begin = [self](FitControl& control) { self->begin(control); },
      .on_epoch_end = [self](const EpochReport& report, FitControl& control) { self->end_epoch(report, control); },
      .on_train_end = [self](FitControl& control) { self->end(control); },
      .save = [self] { return self->save(); },
      .restore = [self](const std::string& text) { self->restore(text); },
      .same = described("early_stopping", options)};
}

}  // namespace headrace
