#include "headrace/train/callbacks.h"

#include <string_view>

#include "headrace/devices/base/error.h"

namespace headrace {

const std::vector<double>& History::operator[](const std::string& name) const {
  if (const auto found = lists_.find(name); found != lists_.end()) return found->second;
  std::string names;
  for (const auto& [each, list] : lists_) names += (names.empty() ? "" : ", ") + each;
  throw ConfigError("the history has no '" + name + "'", "it has " + (names.empty() ? "nothing" : names));
}

std::size_t History::epochs() const { return lists_.empty() ? 0 : lists_.begin()->second.size(); }

bool higher_is_better(const std::string& name, Better mode) {
  if (mode != Better::kAuto) return mode == Better::kHigher;
  std::string_view own(name);
  if (own.starts_with("val_")) own.remove_prefix(4);
  own.remove_prefix(own.find_last_of('/') + 1);  // the output that a metric names, of several
  return own == "accuracy" || own.starts_with("top_") || own == "examples_per_second";
}

}  // namespace headrace
