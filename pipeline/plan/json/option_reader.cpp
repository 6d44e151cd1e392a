#include "headrace/pipeline/plan/json/option_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/option_json.h"
#include "headrace/pipeline/plan/json/parse.h"

namespace headrace {
namespace plan_json {
namespace {

// Reads one value to where it belongs.
class ValueReader {
 public:
  ValueReader(const JsonPlace& place, const PlanOptions& options) : place_(place), options_(options) {}

  void operator()(bool* value) const {
    if (!place_.value().is_boolean()) want("true or false");
    *value = place_.value().get<bool>();
  }

  template <typename Number>
  requires std::is_arithmetic_v<Number>
  void operator()(Number* value) const {
    if constexpr (std::is_floating_point_v<Number>) {
      *value = real<Number>();
    } else {
      *value = whole<Number>();
    }
  }

  void operator()(std::string* value) const { *value = place_.text(); }

  void operator()(std::filesystem::path* value) const {
    const std::string text = place_.text();
    if (!options_.allow_paths) {
      place_.refuse("names a path, and this plan may name none: " + named("PlanOptions::allow_paths", "false"),
                    advice("name one of {}: {\"named\": ...}", named("PlanParts::sources")));
    }
    if (text.empty() || text.find('\0') != std::string::npos) place_.refuse(place_.shown() + " is no path");
    *value = is_url(text) ? std::filesystem::path(text) : options_.base / text;  // an absolute one stays as it is
  }

  template <typename Item>
  void operator()(std::vector<Item>* values) const {
    values->clear();
    if constexpr (std::is_same_v<Item, std::filesystem::path>) {
      if (place_.value().is_string()) return ValueReader(place_, options_)(&values->emplace_back());
    }
    for (const JsonPlace& item : place_.items()) ValueReader(item, options_)(&values->emplace_back());
  }

 private:
  [[noreturn]] void want(const std::string& what) const {
    place_.refuse(fmt::format("{} where {} is needed", place_.shown(), what));
  }

  template <typename Number>
  Number whole() const {
    using Limits = std::numeric_limits<Number>;
    const nlohmann::json& value = place_.value();
    const bool fits = value.is_number_unsigned()  ? std::in_range<Number>(value.get<std::uint64_t>())
                      : value.is_number_integer() ? std::in_range<Number>(value.get<std::int64_t>())
                                                  : false;
    if (!fits) want(fmt::format("a whole number from {} to {}", Limits::min(), Limits::max()));
    return value.get<Number>();
  }

  template <typename Number>
  Number real() const {
    if (!place_.value().is_number()) want("a number");
    const auto value = static_cast<Number>(place_.value().get<double>());
    if (!std::isfinite(value)) want(fmt::format("a number of at most {}", std::numeric_limits<Number>::max()));
    return value;
  }

  const JsonPlace& place_;
  const PlanOptions& options_;
};

bool is_path(const OptionPlace& place) {
  return std::holds_alternative<std::filesystem::path*>(place) ||
         std::holds_alternative<std::vector<std::filesystem::path>*>(place);
}

}  // namespace

void OptionReader::visit(const char* name, OptionPlace place) {
  if (object_.has(name)) return std::visit(ValueReader(object_.member(name), options_), place);
  if (is_path(place) && !paths_have_defaults_) object_.refuse(fmt::format("'{}' is missing", name));
}

void OptionReader::visit_numbers(const char* name, std::span<float> values, Short form) {
  if (!object_.has(name)) return;
  const JsonPlace place = object_.member(name);
  const ValueReader reader(place, options_);
  float number = 0;
  std::vector<float> list;
  if (place.value().is_number()) {
    reader(&number);
    if (take(number, values, form)) return;
  } else {
    reader(&list);
    if (take(list, values, form)) return;
  }
  place.refuse(fmt::format("{} where {} numbers are needed", place.shown(), values.size()));
}

void OptionReader::visit_choice(const char* name, std::size_t& number, std::span<const char* const> choices) {
  if (!object_.has(name)) return;
  const JsonPlace place = object_.member(name);
  const std::string text = place.text();
  const auto found = std::ranges::find(choices, text);
  if (found == choices.end()) {
    place.refuse(place.shown() + " is not among the choices", "write " + one_of({choices.begin(), choices.end()}));
  }
  number = static_cast<std::size_t>(found - choices.begin());
}

void OptionReader::visit_list(const char* name, const List& list) {
  if (!object_.has(name)) return;
  const std::vector<JsonPlace> items = object_.member(name).items();
  list.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    read_options(items[i], options_, [&](OptionVisitor& visitor) { list.show(i, visitor); });
  }
}

}  // namespace plan_json

void set_from_json(std::string_view json, const char* whole, const ShowOptions& show) {
  if (json.empty()) return;
  const nlohmann::json parsed = plan_json::parse(json, whole, "write options as {\"name\": value, ...}");
  const plan_json::JsonPlace object(parsed, whole);
  plan_json::want_options(object, show);
  const PlanOptions any_path;
  plan_json::OptionReader reader(object, any_path, true);
  show(reader);
}

}  // namespace headrace
