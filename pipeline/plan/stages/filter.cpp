// filter(): the positions whose records a function accepts, found at the first request by one parallel scan.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/evaluation_stages.h"
#include "headrace/pipeline/plan/filter_failures.h"
#include "headrace/pipeline/plan/index/bit_select.h"
#include "headrace/pipeline/plan/json/named_parts.h"
#include "headrace/pipeline/plan/scan/filter_scan.h"
#include "headrace/pipeline/plan/scan/scan_once.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"

namespace headrace {
namespace {

constexpr const char* kFilter = "filter";

// The function of with_labels(): a filter defined by data.
struct LabelFilter {
  std::vector<std::int64_t> labels;  // sorted

  bool operator()(const ExampleView& record) const { return std::ranges::binary_search(labels, record.label()); }
};

// The options of with_labels().
struct LabelOptions {
  std::vector<std::int64_t> labels = {};
  RecordFilter filter = {};  // without its function

  void each_field(OptionVisitor& visit) {
    visit("labels", labels, "Records with these labels are kept.");
    filter.each_field(visit);
  }
};

std::size_t stages_before_filter(const std::vector<StagePtr>& index_stages) {
  return stages_before_order(index_stages, /*numbers=*/false, "filter()",
                             "put filter() first, before shuffling, mixing and taking parts");
}

// The records that a filter keeps. Shared by all plans derived from one filter(). Thread-safe.
class Selection {
 public:
  // `before` is the plan to which the filter was appended.
  Selection(PlanPtr before, RecordFilter filter) : before_(std::move(before)), filter_(std::move(filter)) {}

  const RecordFilter& filter() const noexcept { return filter_; }
  // Returns "filter(name, version 1)" and, for a filter of processed fields, their processing.
  std::string describe() const {
    std::string text = headrace::describe(filter_);
    if (!filter_.processed) return text;
    std::string stages;
    for (const StagePtr& stage : stages_of(before_)) {
      if (stage->traits().processes) stages += (stages.empty() ? "" : " | ") + stage->describe();
    }
    return fmt::format("{} of what {} leaves", text, stages.empty() ? "the source" : stages);
  }
  // Returns the positions, among those of the index stages before the filter, whose record is kept, and the
  // records that could not be read or judged, which are kept, too, and never retried. The first call reads all
  // their records. Throws the function's ConfigError, errors for which no record is at fault, such as running out
  // of memory, and, as RecordScan does, Error(kTimeout) and a ScanPoll's exceptions; a later call then retries.
  const FilterScan& result() const {
    return result_.get([this] { return scan(); });
  }

 private:
  FilterScan scan() const {
    const StreamPlan plan = make_stream_plan(before_);
    std::vector<StagePtr> stages = plan.index_stages;
    stages.resize(stages_before_filter(stages));
    const std::vector<SampleStage> none;
    return run_filter(plan, stages, filter_.processed ? plan.sample_stages : none, filter_);
  }

  PlanPtr before_;
  RecordFilter filter_;
  ScanOnce<FilterScan> result_;
};

// The positions that a filter keeps.
class FilterIndex final : public IndexStage {
 public:
  // Runs the filter unless it has run before, which reads the source. Throws as Selection::result() does.
  explicit FilterIndex(std::shared_ptr<const Selection> selection)
      : selection_(std::move(selection)), kept_(&selection_->result().kept) {}

  std::uint64_t size() const noexcept override { return kept_->count(); }
  Located locate(const Located& at, IndexMemory* /*memory*/) const override {
    return {.record = kept_->select(at.record), .pass = at.pass};
  }

 private:
  std::shared_ptr<const Selection> selection_;
  const BitSelect* kept_;  // the selection's
};

class FilterStage final : public Stage {
 public:
  explicit FilterStage(std::shared_ptr<const Selection> selection) : selection_(std::move(selection)) {}

  std::string describe() const override { return selection_->describe(); }
  nlohmann::ordered_json to_json(const PlanParts& parts, const std::string& path) const override {
    const RecordFilter& filter = selection_->filter();
    const auto* labels = filter.keeps.target<LabelFilter>();
    if (labels == nullptr) return {{kFilter, plan_json::write_named(filter, parts, path + "." + kFilter)}};
    return plan_json::named_options(path, kFilter, LabelOptions{.labels = labels->labels, .filter = filter});
  }
  void plan_into(PlanBuilder& plan) const override {
    plan.want_numbers(describe());
    if (plan.plan().batch) {
      throw ConfigError(fmt::format("{} stands after batch() and judges single records", describe()),
                        "put filter() before batch(), or unbatch() before it and another batch() after it");
    }
    if (selection_->filter().processed || !plan.plan().parts.empty()) plan.want_nothing_random("filter()");
    plan.insert_index_stage(stages_before_filter(plan.plan().index_stages), shared_from_this());
  }
  void evaluate(EvaluationStages& stages) const override {
    const RecordFilter& filter = selection_->filter();
    if (filter.keeps.target<LabelFilter>() == nullptr) refuse_code(headrace::describe(filter));
    stages.keep(shared_from_this());
  }
  StagePtr after(const PlanPtr& before) const override {
    return std::make_shared<const FilterStage>(std::make_shared<const Selection>(before, selection_->filter()));
  }
  Indexed index(const StageInput& /*before*/) const override {
    auto stage = std::make_shared<const FilterIndex>(selection_);
    return {.positions = stage->size(), .stage = stage};
  }
  void add_failures(FilterFailures& all) const override { all.add(selection_->result().filter_failures); }

 private:
  std::shared_ptr<const Selection> selection_;
};

Dataset read_filter(const Dataset& before, const plan_json::JsonPlace& place, const PlanOptions& plan,
                    const plan_json::Members& members) {
  if (place.has(plan_json::kNamed)) return before.filter(plan_json::named_filter(place, plan.parts));
  const auto options = plan_json::read<LabelOptions>(place, plan, members);
  RecordFilter filter = with_labels(options.labels);
  const std::string usual = std::exchange(filter.name, options.filter.name);
  if (filter.name.empty()) filter.name = usual;
  filter.version = options.filter.version;
  filter.processed = options.filter.processed;
  filter.stall_timeout_seconds = options.filter.stall_timeout_seconds;
  filter.max_failures = options.filter.max_failures;
  return before.filter(std::move(filter));
}

}  // namespace

Dataset Dataset::filter(RecordFilter filter) const {
  if (!filter.keeps) throw ConfigError(fmt::format("filter({}) has no function", filter.name), "set keeps");
  if (filter.name.empty())
    throw ConfigError("a filter needs a name: it is part of the stream's identity", "set name");
  auto selection = std::make_shared<const Selection>(plan_, std::move(filter));
  return Dataset(add_stage(plan_, std::make_shared<const FilterStage>(std::move(selection))));
}

RecordFilter with_labels(std::vector<std::int64_t> labels) {
  std::ranges::sort(labels);
  RecordFilter filter{.name = fmt::format("labels {}", fmt::join(labels, ", "))};
  filter.keeps = LabelFilter{std::move(labels)};
  return filter;
}

std::string describe(const RecordFilter& filter) {
  return fmt::format("filter({}, version {})", filter.name, filter.version);
}

StageCall filter_call() {
  return {.name = kFilter,
          .options = {shown_options<LabelOptions>(kFilter)},
          .required = {"labels"},
          .read = read_filter};
}

}  // namespace headrace
