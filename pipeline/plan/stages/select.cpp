// select(): the positions of a list.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"

namespace headrace {
namespace {

constexpr std::size_t kShown = 8;  // a longer list is described by its first numbers

struct ChosenRecords {
  std::vector<std::uint64_t> numbers = {};

  void each_field(OptionVisitor& visit) {
    visit("numbers", numbers, "The records' numbers, in the order wanted.");
  }
};

// Immutable and thread-safe; shared by all plans derived from one select(). Takes 8 bytes a number, 12 if some are
// repeated.
class ChosenNumbers {
 public:
  explicit ChosenNumbers(std::vector<std::uint64_t> numbers);

  const std::vector<std::uint64_t>& numbers() const noexcept { return numbers_; }
  // Returns how often the most frequent number occurs: at least 1.
  std::uint64_t max_occurrences() const noexcept { return max_occurrences_; }
  // Returns how many equal numbers precede the one at `place`. O(1). REQUIRES: `place` < numbers().size().
  std::uint64_t occurrence(std::size_t place) const noexcept {
    return occurrences_.empty() ? 0 : occurrences_[place];
  }
  // Throws ConfigError with the first number that is not below `count`, and its place.
  void require_below(std::uint64_t count) const;

 private:
  void count_occurrences();

  std::vector<std::uint64_t> numbers_;
  std::vector<std::uint32_t> occurrences_;  // by place; empty if no number is repeated
  std::uint64_t max_occurrences_ = 1;
  std::uint64_t max_ = 0;
};

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

// The positions of a list.
class SelectIndex final : public IndexStage {
 public:
  // Throws ConfigError if one is not below `before`.
  SelectIndex(std::uint64_t before, std::shared_ptr<const ChosenNumbers> chosen, bool draws_anew)
      : chosen_(std::move(chosen)), passes_(draws_anew ? chosen_->max_occurrences() : 1) {
    chosen_->require_below(before);
  }

  std::uint64_t size() const noexcept override { return chosen_->numbers().size(); }
  // A repeated position is of another pass.
  Located locate(const Located& at, IndexMemory* /*memory*/) const override {
    const std::uint64_t occurrence = passes_ > 1 ? chosen_->occurrence(at.record) : 0;
    return {.record = chosen_->numbers()[at.record], .pass = at.pass * passes_ + occurrence};
  }

 private:
  std::shared_ptr<const ChosenNumbers> chosen_;
  std::uint64_t passes_;
};

constexpr const char* kSelect = "select";

class SelectStage final : public Stage {
 public:
  explicit SelectStage(std::shared_ptr<const ChosenNumbers> chosen, bool draws_anew = false)
      : chosen_(std::move(chosen)), draws_anew_(draws_anew) {}

  // "select(5, 0, 5)", or of a long list its length, first numbers and hash.
  std::string describe() const override {
    const std::vector<std::uint64_t>& numbers = chosen_->numbers();
    if (numbers.size() <= kShown) return fmt::format("select({})", fmt::join(numbers, ", "));
    return fmt::format("select({}, ...; {} numbers, list {})", fmt::join(std::span(numbers).first(3), ", "),
                       numbers.size(), to_hex(xxh3(std::as_bytes(std::span(numbers)))));
  }
  nlohmann::ordered_json to_json(const PlanParts& /*parts*/, const std::string& path) const override {
    return plan_json::named_options(path, kSelect, ChosenRecords{chosen_->numbers()});
  }
  void plan_into(PlanBuilder& plan) const override {
    plan.want_numbers(describe());
    const bool draws_anew = !plan.plan().batch && !is_shuffled(plan.plan().index_stages);
    plan.add_index_stage(std::make_shared<const SelectStage>(chosen_, draws_anew));
  }
  StageTraits traits() const override { return {.by_number = true, .repeats = chosen_->max_occurrences() > 1}; }
  Indexed index(const StageInput& before) const override {
    auto stage = std::make_shared<const SelectIndex>(before.positions, chosen_, draws_anew_);
    return {.positions = stage->size(), .stage = stage};
  }

 private:
  std::shared_ptr<const ChosenNumbers> chosen_;
  // Whether a repeated record gets new random numbers. Stages before it that shuffle would otherwise find another
  // record.
  bool draws_anew_;
};

}  // namespace

Dataset Dataset::select(std::vector<std::uint64_t> numbers) const {
  auto chosen = std::make_shared<const ChosenNumbers>(std::move(numbers));
  return Dataset(add_stage(plan_, std::make_shared<const SelectStage>(std::move(chosen))));
}

StageCall select_call() {
  return stage_call<ChosenRecords, [](const Dataset& data, const ChosenRecords& options) {
    return data.select(options.numbers);
  }>(kSelect, {"numbers"});
}

}  // namespace headrace
