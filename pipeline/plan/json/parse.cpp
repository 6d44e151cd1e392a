#include "headrace/pipeline/plan/json/parse.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/plan/json/json_place.h"

namespace headrace::plan_json {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxReason = 160;
constexpr std::size_t kLine = 100;

// Looks at what the parser reads, as it reads it.
class Watch {
 public:
  using Event = nlohmann::json::parse_event_t;

  Watch(const char* whole, const std::string& hint) : whole_(whole), hint_(hint) {}

  bool operator()(int depth, Event event, const nlohmann::json& parsed) {
    if (depth > kMaxDepth)
      throw ConfigError(fmt::format("{}: nested deeper than {} levels", whole_, kMaxDepth), hint_);
    if (event == Event::object_start) names_.emplace_back();
    if (event == Event::object_end) names_.pop_back();
    if (event == Event::key && !names_.back().insert(parsed.get<std::string>()).second) {
      throw ConfigError(fmt::format("{}: {} occurs twice in one object", whole_,
                                    in_quotes(parsed.get_ref<const std::string&>())),
                        "leave one of them out");
    }
    return true;
  }

 private:
  const char* whole_;
  const std::string& hint_;
  std::vector<std::set<std::string>> names_;  // of the objects that are open
};

// "line 3, column 5: ..." of the library's "[json.exception.parse_error.101] parse error at line 3, column 5:
// ...".
std::string reason(const std::string& what) {
  static constexpr std::string_view kAt = "error at ";
  const std::size_t bracket = what.find("] "), at = what.find(kAt);
  std::string text = what.substr(at != std::string::npos ? at + kAt.size() : bracket + 2);
  if (text.size() > kMaxReason) text = text.substr(0, kMaxReason) + "...";
  for (char& letter : text) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return text;
}

using Printed = nlohmann::ordered_json;

void print_on_line(const Printed& json, std::string& text) {
  if (!json.is_structured()) {
    text += json.dump();
    return;
  }
  text += json.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [name, value] : json.items()) {
    if (!first) text += ", ";
    first = false;
    if (json.is_object()) text += Printed(name).dump() + ": ";
    print_on_line(value, text);
  }
  text += json.is_object() ? '}' : ']';
}

void print_at(const Printed& json, std::size_t indent, std::size_t used, std::string& text) {
  std::string line;
  print_on_line(json, line);
  if (!json.is_structured() || used + line.size() <= kLine) {
    text += line;
    return;
  }
  text += json.is_object() ? "{\n" : "[\n";
  std::size_t left = json.size();
  for (const auto& [name, value] : json.items()) {
    std::string before(indent + 2, ' ');
    if (json.is_object()) before += Printed(name).dump() + ": ";
    text += before;
    print_at(value, indent + 2, before.size() + 1, text);
    text += --left > 0 ? ",\n" : "\n";
  }
  text += std::string(indent, ' ') + (json.is_object() ? '}' : ']');
}

}  // namespace

std::string what_a_plan_is() { return advice("a plan is what {} gives", named("Dataset::to_json()")); }

nlohmann::json parse(std::string_view text) { return parse(text, "plan", what_a_plan_is()); }

nlohmann::json parse(std::string_view text, const char* whole, const std::string& hint) {
  Watch watch(whole, hint);
  try {
    return nlohmann::json::parse(
        text.begin(), text.end(),
        [&](int depth, Watch::Event event, nlohmann::json& parsed) { return watch(depth, event, parsed); });
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError(fmt::format("{}: is no JSON: {}", whole, reason(error.what())), hint);
  }
}

std::string print(const Printed& json) {
  std::string text;
  print_at(json, 0, 0, text);
  return text + "\n";
}

}  // namespace headrace::plan_json
