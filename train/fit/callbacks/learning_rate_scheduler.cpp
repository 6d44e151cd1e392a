// Sets the learning rate as a function of the epoch.
#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <variant>

#include "headrace/devices/base/error.h"
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

}  // namespace headrace
