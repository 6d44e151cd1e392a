#include "headrace/train/records/same_optimizer.h"

#include <fmt/format.h>

#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/train/records/record_json.h"

namespace headrace {
namespace {

using record_json::Json;

// {"sgd": {"momentum": 0.9}} without what follows from the steps of a run.
Json lasting_rule(Json rule) {
  for (auto& [name, options] : rule.items()) {
    for (const char* of_length : {"norm_interval_first", "norm_interval_growth", "norm_interval_over_steps"}) {
      options.erase(of_length);
    }
  }
  return rule;
}

// adam {"beta1":0.9,...}
std::string rule_text(const Json& rule) {
  return fmt::format("{} {}", rule.begin().key(), rule.begin().value().dump());
}

class OptimizerComparison {
 public:
  OptimizerComparison(const TensorFile& file, const Json& was, const Json& is)
      : file_(file.path().string()), was_(was), is_(is) {}

  void check() const {
    same_rule("for all variables that no group takes, ", was_, is_);
    const Json no_groups = Json::array();
    const Json& before = was_.contains("groups") ? was_["groups"] : no_groups;
    const Json& now = is_.contains("groups") ? is_["groups"] : no_groups;
    if (before.size() != now.size()) {
      refuse(fmt::format("{} parameter groups", before.size()), fmt::format("{}", now.size()));
    }
    for (std::size_t i = 0; i < now.size(); ++i) {
      const std::string group = fmt::format("in parameter group {}, ", i + 1);
      if (before[i].at("takes") != now[i].at("takes")) {
        refuse(group + "variables of " + before[i].at("takes").dump(), now[i].at("takes").dump());
      }
      same_rule(group, before[i], now[i]);
    }
    same_presence("lookahead", "lookahead");
    same_presence("average", "an average of the weights");
  }

 private:
  void same_rule(const std::string& where, const Json& before, const Json& now) const {
    const Json was = lasting_rule(before.at("rule")), is = lasting_rule(now.at("rule"));
    if (was != is) refuse(where + rule_text(was), rule_text(is));
  }

  void same_presence(const char* key, const char* what) const {
    if (was_.contains(key) == is_.contains(key)) return;
    was_.contains(key) ? refuse(what, "none") : refuse(fmt::format("no {}", key), what);
  }

  [[noreturn]] void refuse(const std::string& was, const std::string& is) const {
    throw ConfigError(
        fmt::format("the optimizer of the training in {} has {}; that of the model has {}", file_, was, is),
        "compile the model as it was (schedules may differ), or begin another training in another folder");
  }

  std::string file_;
  const Json& was_;
  const Json& is_;
};

}  // namespace

void check_same_optimizer(const TensorFile& file, const Optimizer& optimizer) {
  const Json was = record_json::read_text(file, "compiled", [](const Json& json) { return json.at("optimizer"); });
  const Json is = record_json::parse(to_json(optimizer));
  try {
    OptimizerComparison(file, was, is).check();
  } catch (const Json::exception& error) {
    record_json::refuse_text(file, "compiled", error.what());
  }
}

}  // namespace headrace
