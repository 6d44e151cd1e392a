// filter(): the positions whose records a function accepts, found at the first request by one parallel scan.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/evaluation_stages.h"
#include "headrace/pipeline/plan/filter_failures.h"
#include "headrace/pipeline/plan/index/bit_select.h"
#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/json/named_parts.h"
#include "headrace/pipeline/plan/sample_program.h"
#include "headrace/pipeline/plan/scan/record_scan.h"
#include "headrace/pipeline/plan/scan/scan_findings.h"
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

struct FilterScan {
  BitSelect kept;  // positions before the filter; includes those of `filter_failures`
  FilterFailures filter_failures;
};

// Judges the record at every position of a plan: the bits of one word are one thread's.
class FilterPass final : public RecordScan {
 public:
  FilterPass(const StreamPlan& plan, const std::vector<StagePtr>& index_stages,
             const std::vector<SampleStage>& sample_stages, IndexMap map, const RecordFilter& filter)
      : RecordScan(plan.source, map.size(), filter.stall_timeout_seconds),
        filter_(filter),
        program_(plan, sample_stages),
        step_(describe(filter)),
        map_(std::move(map)),
        earlier_(FilterFailures::of(index_stages)),
        words_(static_cast<std::size_t>((map_.size() + kBlock - 1) / kBlock)),
        findings_(filter.max_failures, joined({"see what is wrong with the data",
                                               advice("raise {}", named("RecordFilter::max_failures"))})) {}

  FilterScan take() { return {.kept = BitSelect(std::move(words_)), .filter_failures = findings_.take()}; }

 private:
  static_assert(kBlock == 64);

  class Judge;
  std::unique_ptr<Visitor> create_visitor(ThreadState& state) override;
  std::uint64_t record_at(std::uint64_t position) const override {
    return IndexCursor(map_).locate(0, position).record;
  }

  RecordFilter filter_;
  SampleProgram program_;  // what is done to a record before it is judged
  std::string step_;
  IndexMap map_;
  FilterFailures earlier_;  // of filters before this one
  std::vector<std::uint64_t> words_;
  ScanFindings findings_;
};

class FilterPass::Judge final : public Visitor {
 public:
  Judge(FilterPass& pass, ThreadState& state) : pass_(pass), state_(state), cursor_(pass.map_) {}

  void visit(std::uint64_t position) override {
    if (keeps(position)) pass_.words_[position / kBlock] |= std::uint64_t{1} << (position % kBlock);
  }

 private:
  bool keeps(std::uint64_t position) {
    const std::uint64_t record = cursor_.locate(0, position).record;
    if (pass_.earlier_.contains(record)) return true;
    try {
      return judge(record, pass_.read(record, scratch_, state_));
    } catch (const ConfigError&) {
      throw;
    } catch (const std::exception& error) {
      Failure failure = Failure::of_record(pass_.source(), record, 0, error);
      if (!failure.is_of_record()) failure.raise();
      pass_.findings_.note(position, record, std::move(failure));
      return true;
    }
  }

  bool judge(std::uint64_t record, const RecordView& view) {
    const Fields& fields = pass_.program_.fields();
    if (pass_.program_.does_nothing()) return judge(record, ExampleView(fields, view));
    cursor_.write_numbers(numbers_.data());
    const StepContext context{
        .record = record, .scratch = &working_, .probe = &state_, .numbers = numbers_.data()};
    RecordView processed;
    std::array<Shape, kMaxFields> shapes;
    std::size_t count = 0;
    for (const FieldView& field : pass_.program_.make_sample(view, context)) {
      processed.fields[count] = field.bytes;
      shapes[count++] = field.shape;
    }
    return judge(record, ExampleView(fields, processed, std::span(shapes).first(count)));
  }

  bool judge(std::uint64_t record, const ExampleView& seen) {
    bool keeps = false;
    state_.begin(pass_.step_, record);
    try {
      run_user_code(state_, [&] { keeps = pass_.filter_.keeps(seen); });
    } catch (const ConfigError& error) {
      throw ConfigError(pass_.step_ + ": " + error.message(), error.hint());
    } catch (const std::exception& error) {
      throw name_step(pass_.step_, error);
    }
    return keeps;
  }

  FilterPass& pass_;
  ThreadState& state_;
  IndexCursor cursor_;
  std::vector<std::byte> scratch_;
  Scratch working_;
  std::array<std::uint64_t, kMaxFields> numbers_{};  // of enumerate() stages
};

std::unique_ptr<RecordScan::Visitor> FilterPass::create_visitor(ThreadState& state) {
  return std::make_unique<Judge>(*this, state);
}

// Reads and judges the record at every position of `index_stages`, as RecordScan does, or the result of
// `sample_stages` if it is not empty; of a combination of processed parts, the combined sample instead of the
// record. Keeps, without judging again, records that filters among the stages could not judge. Throws the error of
// the smallest position: the filter's ConfigError or an error for which no record is at fault, such as running out
// of memory; and as RecordScan::run() does.
FilterScan run_filter(const StreamPlan& plan, const std::vector<StagePtr>& index_stages,
                      const std::vector<SampleStage>& sample_stages, const RecordFilter& filter) {
  IndexMap map(plan.source->info().records, index_stages, 0);
  const auto pass = std::make_shared<FilterPass>(plan, index_stages, sample_stages, std::move(map), filter);
  RecordScan::run(pass);
  return pass->take();
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
  StageTraits traits() const override { return {.keeps_order = true}; }
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
