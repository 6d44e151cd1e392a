// bucket_by_length(): samples of similar length become a batch.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/rng.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/evaluation_stages.h"
#include "headrace/pipeline/plan/index/enumerate_index.h"
#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/index/length_buckets.h"
#include "headrace/pipeline/plan/scan/record_scan.h"
#include "headrace/pipeline/plan/scan/scan_findings.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"
#include "headrace/pipeline/sources/combined/padded_source.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {
namespace {

constexpr const char* kBucketByLength = "bucket_by_length";

// Leaves positions alone, and so commutes with enumerate(), too.
std::size_t stages_before_buckets(const std::vector<StagePtr>& index_stages) {
  return stages_before_order(index_stages, /*numbers=*/true, "bucket_by_length()",
                             "choose and combine records first, then shuffle them");
}

// Returns the index stages before bucket_by_length(), whose records are judged.
std::vector<StagePtr> judged_stages(const StreamPlan& plan) {
  std::vector<StagePtr> stages = plan.index_stages;
  stages.resize(stages_before_buckets(stages));
  return stages;
}

constexpr std::uint64_t kMaxUnread = 65536;  // as RecordFilter::max_failures

class BucketPass final : public RecordScan {
 public:
  BucketPass(const SourcePtr& source, const std::vector<StagePtr>& index_stages, const PaddedField& judged,
             std::vector<std::int64_t> boundaries, IndexMap map)
      : RecordScan(source, map.size(), kScanStallSeconds),
        judged_(judged),
        boundaries_(std::move(boundaries)),
        map_(std::move(map)),
        earlier_(FilterFailures::of(index_stages)),
        findings_(kMaxUnread, "see what is wrong with the data"),
        found_{.buckets = std::vector<std::uint8_t>(map_.size()),
               .counts = std::vector<std::uint64_t>(boundaries_.size() + 1)} {}

  BucketScan take() {
    for (const std::uint8_t bucket : found_.buckets) ++found_.counts[bucket];
    found_.failures = findings_.take();
    return std::move(found_);
  }

 private:
  class Judge;
  std::unique_ptr<Visitor> create_visitor(ThreadState& state) override;
  std::uint64_t record_at(std::uint64_t position) const override {
    return IndexCursor(map_).locate(0, position).record;
  }
  void merge(std::int64_t longest) {
    const std::lock_guard lock(mutex_);
    found_.longest = std::max(found_.longest, longest);
  }

  PaddedField judged_;
  std::vector<std::int64_t> boundaries_;
  IndexMap map_;
  FilterFailures earlier_;  // of filters
  ScanFindings findings_;
  std::mutex mutex_;
  BucketScan found_;  // a position's bucket is one thread's; `longest` by mutex_
};

class BucketPass::Judge final : public Visitor {
 public:
  Judge(BucketPass& pass, ThreadState& state) : pass_(pass), state_(state), cursor_(pass.map_) {}

  void visit(std::uint64_t position) override {
    const std::uint64_t record = cursor_.locate(0, position).record;
    if (pass_.earlier_.contains(record)) return;
    try {
      pass_.found_.buckets[position] = bucket_of(pass_.read(record, scratch_, state_));
    } catch (const std::exception& error) {
      Failure failure = Failure::of_record(pass_.source(), record, 0, error);
      if (!failure.is_of_record()) failure.raise();
      pass_.findings_.note(position, record, std::move(failure));
    }
  }
  void finish() override { pass_.merge(longest_); }

 private:
  std::uint8_t bucket_of(const RecordView& view) {
    const std::size_t bytes = view.fields[pass_.judged_.field].size();
    const auto length = static_cast<std::int64_t>(bytes / pass_.judged_.row_bytes);
    longest_ = std::max(longest_, length);
    return static_cast<std::uint8_t>(std::ranges::lower_bound(pass_.boundaries_, length) -
                                     pass_.boundaries_.begin());
  }

  BucketPass& pass_;
  ThreadState& state_;
  IndexCursor cursor_;
  std::int64_t longest_ = 0;
  std::vector<std::byte> scratch_;
};

std::unique_ptr<RecordScan::Visitor> BucketPass::create_visitor(ThreadState& state) {
  return std::make_unique<Judge>(*this, state);
}

// Reads the record at every position of `index_stages`, as RecordScan does, and judges the length of its field
// `judged`: bucket b has the lengths up to boundaries[b], the last bucket all others. Records that filters among
// the stages could not judge stay theirs. Throws as RecordScan::run() does, and DataError if too many cannot be
// read.
BucketScan run_bucket_scan(const SourcePtr& source, const std::vector<StagePtr>& index_stages,
                           const PaddedField& judged, const std::vector<std::int64_t>& boundaries) {
  IndexMap map(source->info().records, index_stages, 0);
  const auto pass = std::make_shared<BucketPass>(source, index_stages, judged, boundaries, std::move(map));
  RecordScan::run(pass);
  return pass->take();
}

// Numbers positions, by which their buckets are found.
class BucketStage final : public Stage {
 public:
  BucketStage(std::shared_ptr<const LengthBuckets> buckets, std::size_t place)
      : buckets_(std::move(buckets)), place_(place) {}

  std::string describe() const override { return fmt::format("length of '{}'", buckets_->options().field); }
  StageTraits traits() const override { return {.keeps_order = true, .numbers = true}; }
  Indexed index(const StageInput& before) const override {
    return {.positions = before.positions,
            .stage = std::make_shared<const EnumerateIndex>(before.positions, place_)};
  }
  void add_failures(FilterFailures& all) const override { all.add(buckets_->scan().failures); }

 private:
  std::shared_ptr<const LengthBuckets> buckets_;
  std::size_t place_;  // of its number among those of enumerate() stages
};

class BucketBatchStage final : public OptionStage<BucketOptions> {
 public:
  explicit BucketBatchStage(std::shared_ptr<const LengthBuckets> buckets)
      : OptionStage(kBucketByLength, buckets->options()), buckets_(std::move(buckets)) {}

  void plan_into(PlanBuilder& builder) const override {
    builder.begin_batches(
        *this, {.global_batch = buckets_->largest_batch_size(), .drop_remainder = options().drop_remainder});
    builder.want_numbers("bucket_by_length()");
    StreamPlan& plan = builder.plan();
    const std::size_t place = stages_before_buckets(plan.index_stages);
    plan.buckets = buckets_;
    plan.bucket_place = plan.numbers++;
    builder.insert_index_stage(place, std::make_shared<const BucketStage>(buckets_, plan.bucket_place));
  }
  void evaluate(EvaluationStages& /*stages*/) const override {
    refuse_stage("bucket_by_length() makes batches of several shapes");
  }
  StageTraits traits() const override { return {.batches = true}; }

 private:
  std::shared_ptr<const LengthBuckets> buckets_;
};

// Returns the identity of the padded records: of the lengths, and of the records that were judged.
std::uint64_t identity_of(const BucketOptions& options, const PaddedField& judged, const StreamPlan& before) {
  std::uint64_t hash = mix_seed(judged.field, static_cast<std::uint64_t>(options.max_length));
  for (const std::int64_t end : options.boundaries) hash = mix_seed(hash, static_cast<std::uint64_t>(end));
  if (options.max_length > 0) return hash;
  // The longest record is one of those that are judged.
  for (const StagePtr& stage : judged_stages(before)) hash = xxh3(stage->describe(), hash);
  return hash;
}

}  // namespace

Dataset Dataset::bucket_by_length(BucketOptions options) const {
  constexpr const char* kCall = "bucket_by_length()";
  // Refuses what makes no sense before any record is read.
  const StreamPlan plan = make_stream_plan(plan_);
  refuse_stream(*plan.source, named_or("Dataset::bucket_by_length()", "bucketing"));
  if (!plan.parts.empty()) {
    throw ConfigError(std::string(kCall) + " after a combination of datasets that were decoded, mapped or cached",
                      fmt::format("combine them first, then call {}", kCall));
  }
  PlanSource origin = source_of(plan_);
  const SourcePtr source = origin.source;
  std::vector<PadField> pad = options.pad;
  if (!pad.empty() && std::ranges::find(pad, options.field, &PadField::field) == pad.end()) {
    pad.push_back({.field = options.field});
  }
  const std::vector<PaddedField> paddings = plan_padding(source->info(), pad, kCall);
  const PaddedField judged = plan_padding(source->info(), {{.field = options.field}}, kCall).front();
  std::vector<std::string> fields;
  for (const PaddedField& padding : paddings) {
    if (padding.length == 0) fields.push_back(source->info().fields[padding.field].name);
  }
  if (std::ranges::find(fields, options.field) == fields.end()) {
    throw ConfigError(
        fmt::format("{}: field '{}', which it judges, is padded to one length", kCall, options.field),
        "leave its length out");
  }
  const std::uint64_t identity = identity_of(options, judged, plan);
  const auto judge = [before = plan_, judged, boundaries = options.boundaries] {
    const StreamPlan judged_plan = make_stream_plan(before);
    return run_bucket_scan(judged_plan.source, judged_stages(judged_plan), judged, boundaries);
  };
  const auto buckets = std::make_shared<const LengthBuckets>(std::move(options), std::move(fields), judge);
  origin.unpadded = source;
  origin.source = std::make_shared<PaddedSource>(
      source, paddings,
      PaddedLength{.of = judged,
                   .to = [buckets](std::int64_t length) { return buckets->padded_length(length); },
                   .identity = identity});
  return Dataset(
      add_stage(with_source(plan_, std::move(origin)), std::make_shared<const BucketBatchStage>(buckets)));
}

StageCall bucket_by_length_call() {
  StageCall call = stage_call<BucketOptions, [](const Dataset& data, const BucketOptions& options) {
    return data.bucket_by_length(options);
  }>(kBucketByLength, {"field", "boundaries", "batch_sizes"});
  call.read = [](const Dataset& before, const plan_json::JsonPlace& place, const PlanOptions& plan,
                 const plan_json::Members& members) {
    if (plan.global_batch > 0) {
      place.refuse("each bucket has batches of its own size, and another global batch was asked for",
                   "change batch_sizes");
    }
    return before.bucket_by_length(plan_json::read<BucketOptions>(place, plan, members));
  };
  return call;
}

}  // namespace headrace
