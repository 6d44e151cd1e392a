#include "headrace/pipeline/plan/json/json_place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "headrace/devices/base/text.h"

namespace headrace::plan_json {
namespace {

constexpr std::size_t kMaxShown = 60;

std::string cut_short(std::string text) {
  if (text.size() <= kMaxShown) return text;
  std::size_t end = kMaxShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not within a character
  return text.substr(0, end) + "...";
}

}  // namespace

std::string in_quotes(std::string_view text) {
  return cut_short(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string one_of(std::vector<std::string> names) {
  if (names.empty()) return "none";
  if (names.size() == 1) return names.front();
  const std::string last = std::move(names.back());
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

JsonPlace JsonPlace::member(std::string_view name) const {
  return {whole_, value_->at(std::string(name)),
          path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name)};
}

bool JsonPlace::has(std::string_view name) const {
  return value_->is_object() && value_->find(std::string(name)) != value_->end();
}

std::vector<JsonPlace> JsonPlace::items() const {
  if (!value_->is_array()) refuse(fmt::format("{} where a list is needed", shown()), "write it as [...]");
  std::vector<JsonPlace> places;
  places.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    places.push_back(JsonPlace(whole_, (*value_)[i], fmt::format("{}[{}]", path_, i)));
  return places;
}

void JsonPlace::want_object() const {
  if (!value_->is_object()) refuse(fmt::format("{} where an object is needed", shown()), "write it as {...}");
}

void JsonPlace::want_only(const std::vector<std::string>& known) const {
  want_object();
  for (const auto& [name, value] : value_->items()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    refuse(fmt::format("there is no option {}{}", in_quotes(name), did_you_mean(name, known)),
           known.empty() ? "it has no options: write {}" : fmt::format("it has {}", fmt::join(known, ", ")));
  }
}

std::string JsonPlace::only_name(const char* what) const {
  want_object();
  if (value_->size() == 1) return value_->begin().key();
  refuse(fmt::format("{} is an object with one member, its name, and this has {}", what, value_->size()),
         "write it as {\"name\": {...}}");
}

std::string JsonPlace::text() const {
  if (!value_->is_string())
    refuse(fmt::format("{} where a text is needed", shown()), "put it into quotation marks");
  return value_->get<std::string>();
}

void JsonPlace::refuse(const std::string& what, std::string hint) const {
  throw PlaceError(fmt::format("{}{}{}: {}", whole_, path_.empty() ? "" : " at ", path_, what), std::move(hint));
}

std::string JsonPlace::shown() const {
  if (value_->is_object()) return "an object";
  if (value_->is_array()) return "a list";
  if (value_->is_string()) return in_quotes(value_->get_ref<const std::string&>());
  return cut_short(value_->dump());
}

}  // namespace headrace::plan_json
