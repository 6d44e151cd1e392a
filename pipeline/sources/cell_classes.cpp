#include "headrace/pipeline/sources/cell_classes.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace headrace {
namespace {

std::optional<std::int64_t> integer_in(std::string_view name) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

void CellClasses::settle(bool numeric) {
  std::vector<std::pair<std::optional<std::int64_t>, std::int64_t*>> order;
  for (auto& [name, number] : numbers_) order.emplace_back(integer_in(name), &number);
  const bool are_integers = std::ranges::all_of(order, [](const auto& one) { return one.first.has_value(); });
  if (numeric && are_integers) std::ranges::stable_sort(order, {}, [](const auto& one) { return *one.first; });
  for (std::size_t i = 0; i < order.size(); ++i) *order[i].second = static_cast<std::int64_t>(i);
}

void CellClasses::settle(const std::vector<std::string>& names) {
  numbers_.clear();
  for (std::size_t i = 0; i < names.size(); ++i) numbers_[names[i]] = static_cast<std::int64_t>(i);
}

std::vector<std::string> CellClasses::names() const {
  std::vector<std::string> names(numbers_.size());
  for (const auto& [name, number] : numbers_) names[static_cast<std::size_t>(number)] = name;
  return names;
}

std::optional<std::int64_t> CellClasses::number_of(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

void CellClasses::add_to(Fingerprint& fingerprint) const {
  for (const auto& [name, number] : numbers_) fingerprint.add(name).add(static_cast<std::uint64_t>(number));
}

}  // namespace headrace
