#include "headrace/pipeline/plan/zipped_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/sizes.h"

namespace headrace {
namespace {

// The sizes of a dataset's batches, in the order of its stages.
class BatchSizes {
 public:
  explicit BatchSizes(const StreamPlan& plan)
      : name_(plan.source->info().name),
        rows_(plan.batch_rows(plan.index_map(0).size())),
        order_(plan.batch_index_map(plan.index_map(0).size(), 0)) {}

  const std::string& name() const noexcept { return name_; }
  const BatchRows& rows() const noexcept { return rows_; }
  const IndexMap& order() const noexcept { return order_; }

 private:
  std::string name_;
  BatchRows rows_;
  IndexMap order_;
};

[[noreturn]] void refuse_sizes(std::uint64_t step, const BatchSizes& a, std::uint64_t of_a, const BatchSizes& b,
                               std::uint64_t of_b) {
  std::string hint = "drop the remainder of each batch()";
  if (step > 0) hint += fmt::format(", or write take({}) after it", step);
  if (a.rows().full() != b.rows().full()) hint = "give all datasets batches of one size";
  throw ConfigError(
      fmt::format("zip(): batch {} has {} examples of {} and {} of {}", step, of_a, a.name(), of_b, b.name()),
      hint + ", or zip the datasets first and batch the result");
}

[[noreturn]] void refuse_smaller(std::uint64_t step, std::uint64_t examples, std::uint64_t full) {
  throw ConfigError(fmt::format("zip(): batch {} has {} examples, not {} as the first, and is not the last", step,
                                examples, full),
                    "drop the remainder, or call repeat() and shuffle() on the result of zip()");
}

std::uint64_t checked_total(std::uint64_t batches, std::uint64_t full) {
  if (const auto all = checked_product({batches, full})) return *all;
  throw ConfigError(fmt::format("zip(): {} batches of {} are more examples than can be counted", batches, full),
                    "call repeat() on the result of zip()");
}

// Compares the batches one by one and returns the examples of all.
std::uint64_t compare(const std::vector<BatchSizes>& parts, std::uint64_t steps, std::uint64_t full) {
  std::vector<IndexCursor> cursors;
  for (const BatchSizes& part : parts) cursors.emplace_back(part.order());
  std::uint64_t examples = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const auto size_of = [&](std::size_t part) {
      return parts[part].rows().examples_of(cursors[part].locate(0, step).record);
    };
    const std::uint64_t size = size_of(0);
    for (std::size_t part = 1; part < parts.size(); ++part) {
      if (size_of(part) != size) refuse_sizes(step, parts[0], size, parts[part], size_of(part));
    }
    if (size > full || (size < full && step + 1 < steps)) refuse_smaller(step, size, full);
    examples += size;
  }
  return examples;
}

}  // namespace

ZippedBatches zip_batches(const std::vector<StreamPlan>& plans, bool strict) {
  std::vector<BatchSizes> parts;
  for (const StreamPlan& plan : plans) parts.emplace_back(plan);
  const auto [shortest, longest] =
      std::ranges::minmax_element(parts, {}, [](const BatchSizes& part) { return part.order().size(); });
  const std::uint64_t steps = shortest->order().size();
  if (strict && longest->order().size() != steps) {
    throw ConfigError(fmt::format("zip(): {} batches of {} and {} of {}", longest->order().size(), longest->name(),
                                  steps, shortest->name()),
                      advice("end with the shortest: {}", named("ZipOptions::strict", "false")));
  }
  std::uint64_t full = parts[0].rows().full();
  if (steps > 1) full = parts[0].rows().examples_of(IndexCursor(parts[0].order()).locate(0, 0).record);
  const bool alike = std::ranges::all_of(
      parts, [&](const BatchSizes& part) { return part.rows().even() && part.rows().full() == full; });
  const std::uint64_t all = checked_total(steps, full);
  return {.batch = {.global_batch = static_cast<std::int64_t>(full)},
          .examples = alike ? all : compare(parts, steps, full)};
}

ZippedPositions::ZippedPositions(const StreamPlan& plan, std::optional<std::uint64_t> full)
    : map_(plan.index_map(0)) {
  if (!full || (plan.batch_stages.empty() && plan.combined_batches == nullptr)) return;
  batches_ =
      Batches{.rows = plan.batch_rows(map_.size()), .order = plan.batch_index_map(map_.size(), 0), .full = *full};
}

std::uint64_t ZippedPositions::locate(std::uint64_t position, std::uint64_t* numbers) const {
  Located at{.record = position};
  if (batches_) {
    at = IndexCursor(batches_->order).locate(0, position / batches_->full);
    at.record = batches_->rows.first_of(at.record) + position % batches_->full;
  }
  IndexCursor cursor(map_);
  const std::uint64_t record = cursor.locate(at.pass, at.record).record;
  if (numbers != nullptr) cursor.write_numbers(numbers);
  return record;
}

}  // namespace headrace
