#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "headrace/devices/base/checked_size.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/index/selection.h"
#include "headrace/pipeline/plan/plan.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/plan/scan/filter_failures.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/combined/joined_source.h"
#include "headrace/pipeline/sources/combined/union_source.h"
#include "headrace/pipeline/sources/combined/windowed_source.h"

namespace headrace {
namespace {

// A source as the filters behind it saw it: what they could not judge cannot be read. For what reads the source
// without an engine; it has no columns.
class JudgedSource final : public Source {
 public:
  JudgedSource(SourcePtr source, FilterFailures filter_failures)
      : source_(std::move(source)), filter_failures_(std::move(filter_failures)) {}

  const SourceInfo& info() const noexcept override { return source_->info(); }
  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    filter_failures_.check(index);
    return source_->read(index, scratch);
  }
  void will_read(std::span<const std::uint64_t> records) const override { source_->will_read(records); }
  std::optional<std::int64_t> label(std::uint64_t index) const noexcept override { return source_->label(index); }
  std::uint64_t offset(std::uint64_t index) const noexcept override { return source_->offset(index); }
  std::string describe(std::uint64_t index) const override { return source_->describe(index); }

 private:
  SourcePtr source_;
  FilterFailures filter_failures_;
};

// The plan of a dataset without batches.
StreamPlan plan_of_part(const std::string& what, const Dataset& part) {
  StreamPlan plan = make_stream_plan(part.plan());
  refuse_stream(*plan.source, what);
  if (plan.batch) {
    throw ConfigError(fmt::format("{}: the dataset of {} already has a batch()", what, plan.source->info().name),
                      fmt::format("batch the result of {}, or end the dataset with unbatch()", what));
  }
  return plan;
}

bool any_processed(const std::vector<StreamPlan>& plans) {
  return !std::ranges::all_of(plans, &StreamPlan::is_unprocessed);
}

std::vector<StreamPlan> plans_of(const std::string& what, const std::vector<Dataset>& parts) {
  std::vector<StreamPlan> plans;
  for (const Dataset& part : parts) plans.push_back(plan_of_part(what, part));
  return plans;
}

void want_parts(const std::string& what, const std::vector<Dataset>& parts) {
  if (parts.empty()) throw ConfigError(what + " was given no datasets");
}

template <typename How>
Dataset combine(const std::string& what, const std::vector<Dataset>& parts, How how) {
  want_parts(what, parts);
  auto combination = std::make_shared<Combination>(Combination{.how = std::move(how), .parts = {}});
  const std::vector<StreamPlan> plans = plans_of(what, parts);
  const bool processed = any_processed(plans);
  std::vector<SourcePtr> sources;
  std::vector<Fields> made;
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const StreamPlan& plan = plans[i];
    const SourceInfo& info = plan.source->info();
    combination->parts.push_back({.name = info.name,
                                  .records = info.records,
                                  .first_record = first,
                                  .stages = plan.index_stages,
                                  .plan = parts[i].plan()});
    if (processed) {
      combination->processed.push_back({.plan = std::make_shared<const StreamPlan>(plan), .first_record = first});
      made.push_back(plan.fields);
    }
    const auto sum = checked_sum({first, info.records});
    if (!sum) throw ConfigError(fmt::format("{}: more records than can be counted", what));
    first = *sum;
    sources.push_back(plan.source);
  }
  SourceStage stage{.source = std::make_shared<UnionSource>(what, std::move(sources), made),
                    .processed = processed};
  auto source = std::make_shared<const PlanNode>(PlanNode{.before = nullptr, .stage = std::move(stage)});
  return Dataset(std::make_shared<const PlanNode>(
      PlanNode{.before = std::move(source), .stage = CombineStage{std::move(combination)}}));
}

// The numbers of the enumerate() stages of a zipped part; null if it has none.
std::function<void(std::uint64_t, std::uint64_t*)> number_writer(const StreamPlan& plan) {
  if (plan.numbers == 0) return {};
  return
      [map = std::make_shared<const IndexMap>(plan.index_map(0))](std::uint64_t position, std::uint64_t* numbers) {
        IndexCursor cursor(*map);
        cursor.locate(0, position);
        cursor.write_numbers(numbers);
      };
}

// position -> record of a part that has index stages; it finds each again, for it is called by many threads.
JoinedPart joined_part(const std::string& what, const StreamPlan& plan) {
  JoinedPart part{.source = plan.source, .size = 0, .record_at = {}, .fingerprint = 0};
  if (is_shuffled(plan.index_stages)) {
    throw ConfigError(fmt::format("{}: the dataset of {} is shuffled: its order changes from epoch to epoch", what,
                                  plan.source->info().name),
                      "shuffle after " + what);
  }
  const auto map = std::make_shared<const IndexMap>(plan.index_map(0));
  part.size = map->size();
  for (const Stage& stage : plan.index_stages) part.fingerprint = xxh3(describe(stage), part.fingerprint + 1);
  if (FilterFailures filter_failures = FilterFailures::of(plan.index_stages); !filter_failures.empty()) {
    part.fingerprint = filter_failures.mixed_into(part.fingerprint);
    part.source = std::make_shared<const JudgedSource>(plan.source, std::move(filter_failures));
  }
  if (!plan.index_stages.empty()) {
    part.record_at = [map](std::uint64_t position) { return IndexCursor(*map).locate(0, position).record; };
  }
  return part;
}

Dataset from_stage(SourceStage stage) {
  return Dataset(std::make_shared<const PlanNode>(PlanNode{.before = nullptr, .stage = std::move(stage)}));
}

}  // namespace

Dataset Dataset::window(WindowOptions options) const {
  if (options.size < 1) throw ConfigError("window(0): a window has at least one record");
  const StreamPlan plan = plan_of_part("window()", *this);
  if (!plan.is_unprocessed()) {
    throw ConfigError("window() after decode(), map() or cache()", "put window() before them");
  }
  auto source = std::make_shared<const WindowedSource>(joined_part("window()", plan), options);
  return from_stage({.source = std::move(source),
                     .windowed = std::make_shared<const Windowed>(Windowed{.plan = plan_, .options = options})});
}

Dataset concatenate(const std::vector<Dataset>& parts) { return combine("concatenate()", parts, InSequence{}); }

Dataset interleave(const std::vector<Dataset>& parts, InterleaveOptions options) {
  if (options.block < 1 || options.block > std::uint64_t{1} << 47) {
    throw ConfigError(fmt::format("interleave(): a block of {} records", options.block), "use at least 1");
  }
  return combine("interleave()", parts, options);
}

Dataset mix(const std::vector<Dataset>& parts, MixOptions options) {
  if (!options.weights.empty() && options.weights.size() != parts.size()) {
    throw ConfigError(fmt::format("mix(): {} weights for {} datasets", options.weights.size(), parts.size()));
  }
  for (const double weight : options.weights) {
    if (std::isfinite(weight) && weight > 0) continue;
    throw ConfigError(fmt::format("mix(): the weight {} is not above 0", weight),
                      "leave out what shall not take part");
  }
  return combine("mix()", parts, std::move(options));
}

Dataset zip(const std::vector<Dataset>& parts, ZipOptions options) {
  want_parts("zip()", parts);
  std::vector<JoinedPart> sources;
  auto zipped = std::make_shared<Zipped>();
  const std::vector<StreamPlan> plans = plans_of("zip()", parts);
  const bool processed = any_processed(plans);
  std::size_t fields = 0, operations = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sources.push_back(joined_part("zip()", plans[i]));
    zipped->parts.push_back(parts[i].plan());
    if (!processed) continue;
    sources.back().made = plans[i].fields;
    auto plan = std::make_shared<const StreamPlan>(renumbered(plans[i], operations));
    operations = plan->operations;
    zipped->processed.push_back({.plan = std::move(plan),
                                 .first_field = fields,
                                 .record_at = sources.back().record_at,
                                 .write_numbers = number_writer(plans[i])});
    fields += plans[i].source->info().fields.size();
  }
  SourceStage stage{.source = std::make_shared<JoinedSource>(std::move(sources), options), .processed = processed};
  zipped->options = std::move(options);
  stage.zipped = std::move(zipped);
  return from_stage(std::move(stage));
}

}  // namespace headrace
