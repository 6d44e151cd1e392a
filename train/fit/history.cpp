#include "headrace/train/callbacks.h"

#include "headrace/devices/base/error.h"

namespace headrace {

const std::vector<double>& History::operator[](const std::string& name) const {
  if (const auto found = lists_.find(name); found != lists_.end()) return found->second;
  std::string names;
  for (const auto& [each, list] : lists_) names += (names.empty() ? "" : ", ") + each;
  throw ConfigError("the history has no '" + name + "'", "it has " + (names.empty() ? "nothing" : names));
}

std::size_t History::epochs() const { return lists_.empty() ? 0 : lists_.begin()->second.size(); }

}  // namespace headrace
