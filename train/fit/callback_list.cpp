#include "headrace/train/fit/callback_list.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

bool due(const Callback& callback, std::uint64_t global_step) {
  return callback.on_step && callback.every_steps > 0 && global_step % callback.every_steps == 0;
}

std::vector<std::string> state_names(const std::vector<Callback>& callbacks) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const Callback& callback : callbacks) {
    names.emplace_back();
    if (!callback.save && !callback.restore) continue;
    if (!callback.save || !callback.restore || callback.name.empty()) {
      throw ConfigError(
          fmt::format("the callback '{}' has save() or restore() but not all it needs", callback.name),
          "give it both and a name, or neither");
    }
    std::string name = callback.name;
    for (int use = 2; !taken.insert(name).second; ++use) name = fmt::format("{}_{}", callback.name, use);
    names.back() = std::move(name);
  }
  return names;
}

}  // namespace

CallbackList::CallbackList(const std::vector<Callback>& callbacks, FitControl& control)
    : callbacks_(callbacks), control_(control), names_(state_names(callbacks)) {}

void CallbackList::begin_train() const {
  for (const Callback& callback : callbacks_) {
    if (callback.on_train_begin) callback.on_train_begin(control_);
  }
}

void CallbackList::begin_epoch(int epoch) const {
  for (const Callback& callback : callbacks_) {
    if (callback.on_epoch_begin) callback.on_epoch_begin(epoch, control_);
  }
}

bool CallbackList::wants(std::uint64_t global_step) const noexcept {
  for (const Callback& callback : callbacks_) {
    if (due(callback, global_step)) return true;
  }
  return false;
}

void CallbackList::exact_step(const StepReport& report) const {
  for (const Callback& callback : callbacks_) {
    if (due(callback, report.global_step)) callback.on_step(report, control_);
  }
}

void CallbackList::step(const StepReport& report) const {
  for (const Callback& callback : callbacks_) {
    if (callback.on_step && callback.every_steps == 0) callback.on_step(report, control_);
  }
}

void CallbackList::end_epoch(const EpochReport& report) const {
  for (const Callback& callback : callbacks_) {
    if (callback.on_epoch_end) callback.on_epoch_end(report, control_);
  }
}

void CallbackList::end_train() const {
  for (const Callback& callback : callbacks_) {
    if (callback.on_train_end) callback.on_train_end(control_);
  }
}

std::string CallbackList::save() const {
  nlohmann::json states = nlohmann::json::object();
  for (std::size_t i = 0; i < callbacks_.size(); ++i) {
    if (!names_[i].empty()) states[names_[i]] = callbacks_[i].save();
  }
  return states.dump();
}

void CallbackList::restore(const std::string& states) const {
  const nlohmann::json saved = nlohmann::json::parse(states, nullptr, false);
  if (!saved.is_object()) throw ConfigError("the callbacks' state is no JSON object", "take it from save()");
  for (std::size_t i = 0; i < callbacks_.size(); ++i) {
    const auto mine = saved.find(names_[i]);
    if (names_[i].empty() || mine == saved.end()) continue;
    if (!mine->is_string()) throw ConfigError(fmt::format("the state of the callback '{}' is no text", names_[i]));
    callbacks_[i].restore(mine->get<std::string>());
  }
}

}  // namespace headrace
