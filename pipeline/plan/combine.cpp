#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/combination.h"
#include "headrace/pipeline/plan/filter_failures.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"
#include "headrace/pipeline/plan/zipped_batches.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/sources/combined/combined_sources.h"

namespace headrace {
namespace {

// A source as the filters after it saw it: what they could not judge cannot be read. For what reads the source
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

const std::string& part_name(const StreamPlan& plan) { return plan.source->info().name; }

StreamPlan plan_of_part(const std::string& what, const Dataset& part) {
  StreamPlan plan = make_stream_plan(part.plan());
  refuse_stream(*plan.source, what);
  return plan;
}

// Refuses batches that differ in more than their number of examples, or were changed as a whole.
void want_plain_batches(const std::string& what, const StreamPlan& plan) {
  const auto refuse = [&](const std::string& stage, const std::string& why) {
    throw ConfigError(fmt::format("{}: the dataset of {} has a {}, {}", what, part_name(plan), stage, why),
                      fmt::format("leave it out and call {} on the result of {}", stage, what));
  };
  if (plan.buckets != nullptr) refuse("bucket_by_length()", "whose batches differ in shape");
  if (plan.ragged_batch != nullptr) refuse("ragged_batch()", "whose samples differ in length");
  if (plan.batch_operations.empty()) return;
  refuse(fmt::format("map({})", describe(plan.batch_operations.front().operation)),
         "which mixes the examples of a batch");
}

// Wants either batches of all datasets, or records of all.
void want_one_kind(const std::string& what, const std::vector<StreamPlan>& plans) {
  for (const StreamPlan& plan : plans) {
    want_plain_batches(what, plan);
    if (plan.batch.has_value() == plans.front().batch.has_value()) continue;
    const auto& [with, without] = plan.batch ? std::pair(part_name(plan), part_name(plans.front()))
                                             : std::pair(part_name(plans.front()), part_name(plan));
    throw ConfigError(
        fmt::format("{}: the dataset of {} has a batch() and that of {} has none", what, with, without),
        "call batch() on all of them or on none, or end those that have it with unbatch()");
  }
}

bool any_processed(const std::vector<StreamPlan>& plans) {
  return !std::ranges::all_of(plans, &StreamPlan::is_unprocessed);
}

std::vector<StreamPlan> plans_of(const std::string& what, const std::vector<Dataset>& parts) {
  std::vector<StreamPlan> plans;
  for (const Dataset& part : parts) plans.push_back(plan_of_part(what, part));
  want_one_kind(what, plans);
  return plans;
}

std::optional<PartBatches> batches_of_part(const StreamPlan& plan) {
  if (!plan.batch) return std::nullopt;
  return PartBatches{.options = *plan.batch,
                     .stages = plan.batch_stages,
                     .combined = plan.combined_batches,
                     .prefetch = plan.prefetch};
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
                                  .plan = parts[i].plan(),
                                  .batches = batches_of_part(plan)});
    if (processed) {
      combination->processed.push_back({.plan = std::make_shared<const StreamPlan>(plan), .first_record = first});
      made.push_back(plan.fields);
    }
    const auto sum = checked_sum({first, info.records});
    if (!sum) throw ConfigError(fmt::format("{}: more records than can be counted", what));
    first = *sum;
    sources.push_back(plan.source);
  }
  return Dataset(begin_plan({.source = std::make_shared<UnionSource>(what, std::move(sources), made),
                             .combination = std::move(combination),
                             .processed = processed}));
}

void refuse_shuffled(const std::string& what, const StreamPlan& plan) {
  if (!is_shuffled(plan.index_stages) && !is_shuffled(plan.batch_stages)) return;
  throw ConfigError(fmt::format("{}: the dataset of {} is shuffled: its order changes from epoch to epoch", what,
                                part_name(plan)),
                    "shuffle after " + what);
}

// Returns the identity of a part's order of records, 0 if it has none of its own.
std::uint64_t fingerprint_of_order(const StreamPlan& plan) {
  std::uint64_t fingerprint = 0;
  const auto add = [&](const std::string& stage) { fingerprint = xxh3(stage, fingerprint + 1); };
  for (const StagePtr& stage : plan.index_stages) add(stage->describe());
  if (plan.batch) add(described("batch", *plan.batch));
  for (const StagePtr& stage : plan.batch_stages) add(stage->describe());
  return fingerprint;
}

// A part and the order of its records, which is walked anew for each, for it is asked by many threads.
JoinedPart joined_part(const StreamPlan& plan, const std::shared_ptr<const ZippedPositions>& positions) {
  JoinedPart part{.source = plan.source,
                  .size = positions->size(),
                  .record_at = {},
                  .fingerprint = fingerprint_of_order(plan)};
  if (FilterFailures filter_failures = FilterFailures::of(plan.index_stages); !filter_failures.empty()) {
    part.fingerprint = filter_failures.mixed_into(part.fingerprint);
    part.source = std::make_shared<const JudgedSource>(plan.source, std::move(filter_failures));
  }
  if (!plan.index_stages.empty() || !plan.batch_stages.empty()) {
    part.record_at = [positions](std::uint64_t position) { return positions->record_at(position); };
  }
  return part;
}

// Returns a part's plan with the numbers of its operations raised by `by`, so that two zipped parts draw other
// random numbers.
StreamPlan raised(StreamPlan plan, std::size_t by) {
  for (SampleStage& stage : plan.sample_stages) {
    auto* planned = std::get_if<PlannedOperation>(&stage);
    if (planned != nullptr) planned->number = static_cast<std::uint16_t>(planned->number + by);
  }
  for (ProcessedPart& part : plan.parts) {
    part.plan = std::make_shared<const StreamPlan>(raised(*part.plan, by));
  }
  plan.operations += by;
  return plan;
}

}  // namespace

Dataset Dataset::window(WindowOptions options) const {
  if (options.size < 1) throw ConfigError("window(0): a window has at least one record");
  const StreamPlan plan = plan_of_part("window()", *this);
  if (plan.batch) {
    throw ConfigError(fmt::format("window(): the dataset of {} already has a batch()", part_name(plan)),
                      "put window() before batch(), or unbatch() before it");
  }
  if (!plan.is_unprocessed()) {
    throw ConfigError("window() after decode(), map() or cache()", "put window() before them");
  }
  refuse_shuffled("window()", plan);
  const auto positions = std::make_shared<const ZippedPositions>(plan, std::nullopt);
  auto source = std::make_shared<const WindowedSource>(joined_part(plan, positions), options);
  return Dataset(
      begin_plan({.source = std::move(source),
                  .windowed = std::make_shared<const Windowed>(Windowed{.plan = plan_, .options = options})}));
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
  for (const StreamPlan& plan : plans) refuse_shuffled("zip()", plan);
  std::optional<ZippedBatches> batches;
  if (plans.front().batch) {
    batches = zip_batches(plans, options.strict);
    zipped->batch = batches->batch;
    zipped->prefetch = std::ranges::max(plans, {}, &StreamPlan::prefetch).prefetch;
  }
  const bool processed = any_processed(plans);
  std::size_t fields = 0, operations = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::optional<std::uint64_t> full;
    if (batches) full = static_cast<std::uint64_t>(batches->batch.global_batch);
    const auto positions = std::make_shared<const ZippedPositions>(plans[i], full);
    sources.push_back(joined_part(plans[i], positions));
    if (batches) sources.back().size = batches->examples;
    zipped->parts.push_back(parts[i].plan());
    if (!processed) continue;
    sources.back().made = plans[i].fields;
    auto plan = std::make_shared<const StreamPlan>(raised(plans[i], operations));
    operations = plan->operations;
    ProcessedPart& part = zipped->processed.emplace_back(
        ProcessedPart{.plan = std::move(plan), .first_field = fields, .record_at = sources.back().record_at});
    if (plans[i].numbers > 0) {
      part.write_numbers = [positions](std::uint64_t position, std::uint64_t* numbers) {
        positions->write_numbers(position, numbers);
      };
    }
    fields += plans[i].source->info().fields.size();
  }
  const auto source = std::make_shared<JoinedSource>(std::move(sources), options);
  zipped->options = std::move(options);
  return Dataset(begin_plan({.source = source, .zipped = std::move(zipped), .processed = processed}));
}

StageCall window_call() {
  return stage_call<WindowOptions, [](const Dataset& data, const WindowOptions& options) {
    return data.window(options);
  }>("window", {"size"});
}

}  // namespace headrace
