#include "headrace/pipeline/plan/index/chosen_numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

constexpr std::size_t kShown = 8;  // a longer list is described by its first numbers

}  // namespace

ChosenNumbers::ChosenNumbers(std::vector<std::uint64_t> numbers) : numbers_(std::move(numbers)) {
  if (!numbers_.empty()) max_ = *std::ranges::max_element(numbers_);
  count_occurrences();
}

void ChosenNumbers::count_occurrences() {
  std::vector<std::pair<std::uint64_t, std::size_t>> sorted;  // number and place
  sorted.reserve(numbers_.size());
  for (std::size_t place = 0; place < numbers_.size(); ++place) sorted.emplace_back(numbers_[place], place);
  std::ranges::sort(sorted);
  std::uint32_t before = 0;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    before = sorted[i].first == sorted[i - 1].first ? before + 1 : 0;
    if (before == 0) continue;
    occurrences_.resize(numbers_.size());
    occurrences_[sorted[i].second] = before;
    max_occurrences_ = std::max<std::uint64_t>(max_occurrences_, before + 1);
  }
}

void ChosenNumbers::require_below(std::uint64_t count) const {
  if (numbers_.empty() || max_ < count) return;
  const auto bad = std::ranges::find_if(numbers_, [&](std::uint64_t number) { return number >= count; });
  throw ConfigError(
      fmt::format("select(): number {}, at place {} of the list, is out of range: there are {}", *bad,
                  bad - numbers_.begin(), count),
      count == 0 ? "select() what the stages before it leave" : fmt::format("numbers go from 0 to {}", count - 1));
}

std::string ChosenNumbers::describe() const {
  if (numbers_.size() <= kShown) return fmt::format("select({})", fmt::join(numbers_, ", "));
  return fmt::format("select({}, ...; {} numbers, list {})", fmt::join(std::span(numbers_).first(3), ", "),
                     numbers_.size(), to_hex(xxh3(std::as_bytes(std::span(numbers_)))));
}

}  // namespace headrace
