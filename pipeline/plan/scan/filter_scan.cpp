#include "headrace/pipeline/plan/scan/filter_scan.h"

#include <array>
#include <exception>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/operations/machinery/sample_chains.h"
#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/part_samples.h"
#include "headrace/pipeline/plan/sample_program.h"
#include "headrace/pipeline/plan/scan/record_scan.h"
#include "headrace/pipeline/plan/scan/scan_findings.h"

namespace headrace {
namespace {

// Judges the record at every position of a plan: the bits of one word are one thread's.
class FilterPass final : public RecordScan {
 public:
  FilterPass(const StreamPlan& plan, const std::vector<StagePtr>& index_stages,
             const std::vector<SampleStage>& sample_stages, IndexMap map, const RecordFilter& filter)
      : RecordScan(plan.source, map.size(), filter.stall_timeout_seconds),
        filter_(filter),
        parts_(plan.parts.empty() ? nullptr : std::make_unique<PartSamples>(plan)),
        chains_(plan.source->info().fields, sample_stages, ChainPlace::kBeforeCache),
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
  std::unique_ptr<PartSamples> parts_;  // null: records are as the source holds them
  SampleChains chains_;                 // what is done to a record before it is judged
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
    const Fields& fields = pass_.chains_.output();
    if (pass_.parts_ == nullptr && pass_.chains_.does_nothing()) return judge(record, ExampleView(fields, view));
    RecordView processed;
    std::array<Shape, kMaxFields> shapes;
    process(record, view, processed, shapes);
    return judge(record, ExampleView(fields, processed, std::span(shapes).first(fields.size())));
  }

  void process(std::uint64_t record, const RecordView& view, RecordView& processed,
               std::array<Shape, kMaxFields>& shapes) {
    const Fields& fields = pass_.source().info().fields;
    cursor_.write_numbers(numbers_.data());
    const StepContext context{
        .record = record, .scratch = &working_, .probe = &state_, .numbers = numbers_.data()};
    SampleView sample;
    if (pass_.parts_ != nullptr) {
      std::size_t made = 0;
      sample = pass_.parts_->run(view, context, made);
    } else {
      for (std::size_t i = 0; i < fields.size(); ++i) sample[i] = view_of(fields[i], view.fields[i]);
    }
    pass_.chains_.run(sample, context, [&](std::size_t field, const FieldView& result) {
      results_[field].assign(result.bytes.begin(), result.bytes.end());
      processed.fields[field] = results_[field];
      shapes[field] = result.shape;
    });
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
  std::array<std::uint64_t, kMaxFields> numbers_{};         // of enumerate() stages
  std::array<std::vector<std::byte>, kMaxFields> results_;  // of the chains
};

std::unique_ptr<RecordScan::Visitor> FilterPass::create_visitor(ThreadState& state) {
  return std::make_unique<Judge>(*this, state);
}

}  // namespace

FilterScan run_filter(const StreamPlan& plan, const std::vector<StagePtr>& index_stages,
                      const std::vector<SampleStage>& sample_stages, const RecordFilter& filter) {
  IndexMap map(plan.source->info().records, index_stages, 0);
  const auto pass = std::make_shared<FilterPass>(plan, index_stages, sample_stages, std::move(map), filter);
  RecordScan::run(pass);
  return pass->take();
}

}  // namespace headrace
