#include "headrace/train/fit/one_run.h"

#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"

namespace headrace {

OneRun::OneRun(const Model& model, std::string what)
    : model_(model.state()), what_(std::move(what)), compilation_(model_.compilations) {
  model_.require_compiled((what_ + "()").c_str());
}

void OneRun::begin() {
  if (std::exchange(begun_, true)) throw ConfigError("this " + what_ + " has been run", "prepare another one");
  check_model();
}

void OneRun::check_model() const {
  if (compilation_ == model_.compilations) return;
  throw ConfigError("the model was compiled since this " + what_ + " was prepared", "prepare it after compile()");
}

}  // namespace headrace
