// A copy of a model's variables in host memory, from which they can be restored.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {
class Model;
}

namespace headrace {

class SavedVariables {
 public:
  // Copies all variables, and the second sets of weights (lookahead's, the average) of the optimizer.
  void take(const Model& model);
  void give_back(Model& model) const;

  // Returns the same bits as pairs of a name and the values' bytes in base64.
  nlohmann::json to_json() const;
  // Throws ConfigError for values, and nlohmann's exceptions for a form, that to_json() does not return.
  static SavedVariables from_json(const nlohmann::json& json);

 private:
  // In the order of restoring: a variable before its second sets.
  std::vector<std::pair<std::string, std::vector<float>>> values_;
};

}  // namespace headrace
