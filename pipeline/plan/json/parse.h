// Parses and prints a plan's JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headrace::plan_json {

// Throws ConfigError, with line and column, for invalid JSON, a duplicate name in an object, a number that does
// not fit a double, or nesting deeper than any plan's. Takes time and memory proportional to the text.
// Messages call the text `whole`, and give `hint` where it is not even JSON.
nlohmann::json parse(std::string_view text, const char* whole, const std::string& hint);
// Parses a plan.
nlohmann::json parse(std::string_view text);

// Returns a hint that says what makes plans.
std::string what_a_plan_is();

// Prints JSON, with lists and objects that fit on one line.
std::string print(const nlohmann::ordered_json& json);

}  // namespace headrace::plan_json
