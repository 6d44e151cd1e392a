#include "headrace/train/records/earlier_input.h"

#include <array>
#include <string>
#include <string_view>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

using record_json::Json;

constexpr std::array<std::string_view, 6> kTheSame{"resize", "center_crop", "normalize",
                                                   "cast",   "flatten",     "one_hot"};

// All operations except to_layout have the same form in a plan.
Json operation_of(const Json& earlier) {
  if (!earlier.is_object() || earlier.size() != 1) throw ConfigError("an input's operation has no name");
  const std::string name = earlier.begin().key();
  if (name == "to_layout") {
    const bool first = earlier.at(name).at("channels_first").get<bool>();
    return {{name, {{"to", first ? "channels_first" : "channels_last"}}}};
  }
  for (const std::string_view same : kTheSame) {
    if (name == same) return earlier;
  }
  throw ConfigError("an input's operation '" + name + "' is not known",
                    "there are resize, center_crop, normalize, cast, to_layout, flatten and one_hot");
}

}  // namespace

Json plan_of_earlier_input(const Json& input) {
  Json stages = Json::array({{{"decode", input.at("decode")}}});
  Json operations = Json::array();
  for (const Json& earlier : input.at("operations")) operations.push_back(operation_of(earlier));
  if (!operations.empty()) stages.push_back({{"map", operations}});
  stages.push_back({{"batch", {{"global", input.at("batch")}}}});
  return {{"headrace_plan", 1}, {"source", {{"named", "data"}}}, {"stages", stages}};
}

bool says_nothing(const Json& input) {
  return input.at("operations").empty() && input.at("decode").at("height") == 0;
}

}  // namespace headrace
