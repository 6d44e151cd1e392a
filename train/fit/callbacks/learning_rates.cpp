// Sets the learning rate as a function of the epoch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/fit/callbacks/monitor.h"
#include "headrace/train/model/model_state.h"

namespace headrace {
namespace {

// Returns the optimizer's own rate, without the scale.
double constant_rate(const Model& model) {
  const Schedule& schedule = model.state().require_compiled("learning_rate_scheduler").optimizer.learning_rate;
  const auto* constant = std::get_if<schedules::Constant>(&schedule.form());
  if (constant != nullptr && constant->rate > 0) return constant->rate;
  throw ConfigError(constant == nullptr ? "learning_rate_scheduler: the optimizer's learning rate has a schedule"
                                        : "learning_rate_scheduler: the optimizer's learning rate is 0",
                    "compile with a constant rate above 0, or leave the schedule to the optimizer");
}

}  // namespace

Callback learning_rate_scheduler(std::function<double(int epoch)> rate) {
  if (!rate) throw ConfigError("learning_rate_scheduler has no function");
  return {.name = "learning_rate_scheduler",
          .on_train_begin = [](FitControl& control) { constant_rate(control.model()); },
          .on_epoch_begin =
              [rate = std::move(rate)](int epoch, FitControl& control) {
                const double wanted = rate(epoch);
                if (!std::isfinite(wanted) || wanted < 0) {
                  throw ConfigError(
                      fmt::format("learning_rate_scheduler: the rate of epoch {} is {}", epoch, wanted),
                      "the function must give 0 or more");
                }
                control.set_learning_rate_scale(wanted / constant_rate(control.model()));
              },
          .same = "learning_rate_scheduler"};
}

// Reduces the learning rates of a fit that no longer improves.

namespace {

class ReduceLrOnPlateau {
 public:
  explicit ReduceLrOnPlateau(const ReduceLrOnPlateauOptions& options)
      : options_(options),
        monitor_("reduce_lr_on_plateau", options.monitor, "ReduceLrOnPlateauOptions::mode", options.mode,
                 options.min_delta) {
    if (!(options.factor > 0 && options.factor < 1)) {
      throw ConfigError(fmt::format("reduce_lr_on_plateau: the factor is {}", options.factor),
                        "it lies between 0 and 1");
    }
    if (options.patience < 0 || options.cooldown < 0 || !(options.min_scale >= 0)) {
      throw ConfigError(fmt::format("reduce_lr_on_plateau: patience {}, cooldown {} and min_scale {}",
                                    options.patience, options.cooldown, options.min_scale),
                        "each is 0 or more");
    }
  }

  void begin(const FitControl& control) {
    monitor_.begin(control.lists());
    if (std::exchange(restored_, false)) return;
    monitor_.best.reset();
    waited_ = cooling_ = 0;
  }

  void end_epoch(const EpochReport& report, FitControl& control) {
    const std::optional<double> value = monitor_.value(report);
    if (!value) return;
    const bool cools = cooling_ > 0;
    if (cools) --cooling_;
    if (monitor_.improves(*value) || cools) {
      waited_ = 0;
    } else if (++waited_ >= std::max(1, options_.patience)) {
      reduce(control);
    }
  }

  std::string save() const {
    return nlohmann::json{{"best", optional_number(monitor_.best)}, {"waited", waited_}, {"cooling", cooling_}}
        .dump();
  }

  void restore(const std::string& text) {
    read_callback_state("reduce_lr_on_plateau", text, [&](const nlohmann::json& state) {
      monitor_.best = optional_number(state.at("best"));
      waited_ = state.at("waited").get<int>();
      cooling_ = state.at("cooling").get<int>();
    });
    restored_ = true;
  }

 private:
  void reduce(FitControl& control) {
    const double scale = control.learning_rate_scale();
    control.set_learning_rate_scale(std::min(scale, std::max(options_.min_scale, options_.factor * scale)));
    cooling_ = options_.cooldown;
    waited_ = 0;
  }

  ReduceLrOnPlateauOptions options_;
  Monitor monitor_;
  int waited_ = 0;         // epochs since the best, or since the last reduction's cooldown
  int cooling_ = 0;        // epochs left of the cooldown
  bool restored_ = false;  // since the last fit
};

}  // namespace

Callback reduce_lr_on_plateau(const ReduceLrOnPlateauOptions& options) {
  const auto self = std::make_shared<ReduceLrOnPlateau>(options);
  return {
      .name = "reduce_lr_on_plateau",
      .on_train_begin = [self](FitControl& control) { self->begin(control); },
      .on_epoch_end = [self](const EpochReport& report, FitControl& control) { self->end_epoch(report, control); },
      .save = [self] { return self->save(); },
      .restore = [self](const std::string& text) { self->restore(text); },
      .same = described("reduce_lr_on_plateau", options)};
}

}  // namespace headrace
