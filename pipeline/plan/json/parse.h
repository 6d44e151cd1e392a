// The text of a plan as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headrace::plan_json {

// ConfigError, with line and column, for what is no JSON, has a name twice in one object, a number that no double
// holds, or is nested deeper than any plan is. Takes time and memory in proportion to the text.
nlohmann::json parse(std::string_view text);

// Who makes plans, for hints.
std::string what_a_plan_is();

// The other way: lists and objects that fit on a line are one.
std::string print(const nlohmann::ordered_json& json);

}  // namespace headrace::plan_json
