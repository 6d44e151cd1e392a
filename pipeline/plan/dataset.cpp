#include "headrace/pipeline/dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/plan/index/chosen_numbers.h"
#include "headrace/pipeline/plan/index/length_buckets.h"
#include "headrace/pipeline/plan/index/selection.h"
#include "headrace/pipeline/plan/placement.h"
#include "headrace/pipeline/plan/plan.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/plan/ragged_batch.h"
#include "headrace/pipeline/plan/scan/length_scan.h"
#include "headrace/pipeline/sources/combined/padded_source.h"
#include "headrace/pipeline/sources/combined/unbatched_source.h"

namespace headrace {
namespace {

PlanPtr grow(const PlanPtr& before, Stage stage) {
  return std::make_shared<const PlanNode>(PlanNode{.before = before, .stage = std::move(stage)});
}

const SourcePtr& source_of(const PlanPtr& plan) {
  const PlanNode* node = plan.get();
  while (node->before != nullptr) node = node->before.get();
  return std::get<SourceStage>(node->stage).source;
}

// Returns the plan with the same stages over `padded`, the padded records of its source.
PlanPtr with_padding(const PlanPtr& plan, const SourcePtr& padded) {
  if (plan->before != nullptr) return grow(with_padding(plan->before, padded), plan->stage);
  SourceStage stage = std::get<SourceStage>(plan->stage);
  stage.unpadded = std::exchange(stage.source, padded);
  return grow(nullptr, std::move(stage));
}

// The plan, of records that have numbers. Readers who do not know the call are told what it is for.
StreamPlan plan_of_numbered(const PlanPtr& plan, const char* call, const char* purpose) {
  StreamPlan result = make_stream_plan(plan);
  refuse_stream(*result.source, named_or(call, purpose));
  return result;
}

// Throws ConfigError if the longest record would have to be found in a stream.
void require_lengths_of_stream(const SourceInfo& info, const std::vector<PaddedField>& paddings) {
  const auto unknown = std::ranges::find(paddings, 0, &PaddedField::length);
  if (!info.streamed || unknown == paddings.end()) return;
  const std::string& field = info.fields[unknown->field].name;
  throw ConfigError(fmt::format("{} of {}: the longest record of a stream is not known beforehand",
                                named_or("Dataset::padded_batch()", "padding"), info.name),
                    joined({fmt::format("say to which length the field '{}' is padded", field),
                            advice("keep all records in memory: {}", named("pulled()"))}));
}

// Returns [first, end) of the files count, index + count, ... Throws ConfigError if the source is not made of
// files.
ShardFilesStage files_of_worker(const PlanPtr& plan, const WorkerShard& shard) {
  const SourceInfo& info = source_of(plan)->info();
  if (plan->before != nullptr) {
    throw ConfigError("shard_for_worker() by file: other stages come before it", "put it right after the source");
  }
  if (info.file_ends.empty()) {
    throw ConfigError(fmt::format("shard_for_worker() by file: {} does not consist of several files", info.name),
                      "shard by element");
  }
  if (info.file_ends.size() < shard.count) {
    throw ConfigError(fmt::format("shard_for_worker() by file: {} has {} files for {} workers", info.name,
                                  info.file_ends.size(), shard.count),
                      "shard by element");
  }
  ShardFilesStage stage{.count = shard.count, .index = shard.index, .ranges = {}};
  for (std::size_t file = shard.index; file < info.file_ends.size(); file += shard.count) {
    stage.ranges.emplace_back(file == 0 ? 0 : info.file_ends[file - 1], info.file_ends[file]);
  }
  return stage;
}

}  // namespace

std::shared_ptr<MemoryCache> memory(std::uint64_t budget_bytes) {
  return std::make_shared<MemoryCache>(budget_bytes);
}

std::shared_ptr<DiskCache> disk(const std::filesystem::path& folder, DiskCacheOptions options) {
  return std::make_shared<DiskCache>(folder, options);
}

Dataset Dataset::from(SourcePtr source) {
  if (source == nullptr) throw ConfigError("Dataset::from() was given no source");
  return Dataset(grow(nullptr, SourceStage{std::move(source)}));
}

Dataset Dataset::decode(DecodeOptions options) const {
  const bool any = options.height == 0 && options.width == 0;
  if (!any && (options.height < 1 || options.width < 1)) {
    throw ConfigError(fmt::format("decode({} x {}): no image has this size", options.height, options.width),
                      "give height and width, or neither");
  }
  return Dataset(grow(plan_, DecodeStage{options}));
}

Dataset Dataset::map(const Operations& operations) const {
  return Dataset(grow(plan_, MapStage{operations.list()}));
}

Dataset Dataset::shuffle(ShuffleOptions options) const { return Dataset(grow(plan_, ShuffleStage{options})); }

Dataset Dataset::repeat(std::int64_t times) const {
  if (times < 1) throw ConfigError(fmt::format("repeat({}): at least one pass is needed", times));
  return Dataset(grow(plan_, RepeatStage{static_cast<std::uint64_t>(times)}));
}

Dataset Dataset::take(std::uint64_t count) const { return Dataset(grow(plan_, TakeStage{count})); }

Dataset Dataset::skip(std::uint64_t count) const { return Dataset(grow(plan_, SkipStage{count})); }

Dataset Dataset::select(std::vector<std::uint64_t> numbers) const {
  return Dataset(grow(plan_, SelectStage{std::make_shared<const ChosenNumbers>(std::move(numbers))}));
}

Dataset Dataset::shard(std::uint64_t count, std::uint64_t index) const {
  if (index >= count) {
    throw ConfigError(fmt::format("shard({}, {}): the index must be below the number of shards", count, index));
  }
  return Dataset(grow(plan_, ShardStage{.count = count, .index = index}));
}

Dataset Dataset::without_shard(std::uint64_t count, std::uint64_t index) const {
  if (count < 2 || index >= count) {
    throw ConfigError(fmt::format(
        "without_shard({}, {}): it takes two shards or more, and an index below their number", count, index));
  }
  return Dataset(grow(plan_, WithoutShardStage{.count = count, .index = index}));
}

Dataset Dataset::filter(RecordFilter filter) const {
  if (!filter.keeps) throw ConfigError(fmt::format("filter({}) has no function", filter.name), "set keeps");
  if (filter.name.empty())
    throw ConfigError("a filter needs a name: it is part of the stream's identity", "set name");
  return Dataset(grow(plan_, FilterStage{std::make_shared<const Selection>(plan_, std::move(filter))}));
}

Dataset Dataset::shuffle_window(ShuffleWindowOptions options) const {
  if (options.size < 1) throw ConfigError("shuffle_window(0): a window has at least one position");
  return Dataset(grow(plan_, ShuffleWindowStage{options}));
}

Dataset Dataset::enumerate(EnumerateOptions options) const {
  return Dataset(grow(plan_, EnumerateStage{.options = std::move(options)}));
}

Dataset Dataset::shard_for_worker(WorkerShard shard) const {
  if (shard.index >= shard.count) {
    throw ConfigError(fmt::format("shard_for_worker({}, {}): the index must be below the number of workers",
                                  shard.count, shard.index));
  }
  const bool whole_files = plan_->before == nullptr && source_of(plan_)->info().file_ends.size() >= shard.count;
  if (shard.by == ShardBy::kFile || (shard.by == ShardBy::kAuto && whole_files)) {
    return Dataset(grow(plan_, files_of_worker(plan_, shard)));
  }
  return this->shard(shard.count, shard.index);
}

Dataset Dataset::unbatch() const {
  if (make_stream_plan(plan_).batch) return Dataset(grow(plan_, UnbatchStage{}));
  const StreamPlan plan = plan_of_numbered(plan_, "Dataset::unbatch()", "unbatching");
  if (!plan.is_unprocessed()) {
    throw ConfigError("unbatch() of records after decode(), map() or cache()", "put unbatch() before them");
  }
  auto source = std::make_shared<const UnbatchedSource>(plan.source);
  auto combination = std::make_shared<Combination>(Combination{.how = UnbatchRows{source->rows()}, .parts = {}});
  const SourceInfo& info = plan.source->info();
  combination->parts.push_back(
      {.name = info.name, .records = info.records, .stages = plan.index_stages, .plan = plan_});
  return Dataset(grow(grow(nullptr, SourceStage{std::move(source)}), CombineStage{std::move(combination)}));
}

Dataset Dataset::padded_batch(PaddedBatchOptions options) const {
  // Refuses what makes no sense before any record is read.
  const StreamPlan plan = make_stream_plan(plan_);
  if (!plan.parts.empty()) {
    throw ConfigError("padded_batch() after a combination of datasets that were decoded, mapped or cached",
                      "combine them first, then call padded_batch()");
  }
  const SourcePtr source = source_of(plan_);
  std::vector<PaddedField> paddings = plan_padding(source->info(), options.pad);
  require_lengths_of_stream(source->info(), paddings);
  const auto padded = std::make_shared<PaddedSource>(source, with_lengths(source, std::move(paddings)));
  const Dataset batched =
      Dataset(with_padding(plan_, padded))
          .batch({.global_batch = options.global_batch, .drop_remainder = options.drop_remainder});
  BatchStage stage = std::get<BatchStage>(batched.plan()->stage);
  stage.pad = std::move(options.pad);
  return Dataset(grow(batched.plan()->before, std::move(stage)));
}

Dataset Dataset::ragged_batch(RaggedBatchOptions options) const {
  const Dataset batched = batch({.global_batch = options.global_batch, .drop_remainder = options.drop_remainder});
  const PlanNode* first = plan_.get();
  while (first->before != nullptr) first = first->before.get();
  const auto& source = std::get<SourceStage>(first->stage);
  BatchStage stage = std::get<BatchStage>(batched.plan()->stage);
  stage.ragged = std::make_shared<const RaggedBatch>(source.source, !source.processed, std::move(options.fields));
  return Dataset(grow(plan_, std::move(stage)));
}

Dataset Dataset::bucket_by_length(BucketOptions options) const {
  constexpr const char* kCall = "bucket_by_length()";
  // Refuses what makes no sense before any record is read.
  const StreamPlan plan = plan_of_numbered(plan_, "Dataset::bucket_by_length()", "bucketing");
  if (!plan.parts.empty()) {
    throw ConfigError(std::string(kCall) + " after a combination of datasets that were decoded, mapped or cached",
                      fmt::format("combine them first, then call {}", kCall));
  }
  const SourcePtr source = source_of(plan_);
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
  const bool drop_remainder = options.drop_remainder;
  const auto buckets = std::make_shared<const LengthBuckets>(plan_, std::move(options), judged, std::move(fields));
  const auto padded = std::make_shared<PaddedSource>(
      source, paddings,
      PaddedLength{.of = judged,
                   .to = [buckets](std::int64_t length) { return buckets->padded_length(length); },
                   .identity = buckets->identity()});
  BatchStage stage{.options = {.global_batch = buckets->largest_batch_size(), .drop_remainder = drop_remainder},
                   .buckets = buckets};
  return Dataset(grow(with_padding(plan_, padded), std::move(stage)));
}

Dataset Dataset::cache(std::shared_ptr<SampleCache> cache) const {
  if (cache == nullptr)
    throw ConfigError("cache() was given no cache", "write cache(memory()) or cache(disk(folder))");
  return Dataset(grow(plan_, CacheStage{std::move(cache)}));
}

Dataset Dataset::batch(BatchOptions options) const {
  if (options.global_batch < 1) {
    throw ConfigError(fmt::format("batch({}): a batch holds at least one example", options.global_batch));
  }
  return Dataset(grow(plan_, BatchStage{options}));
}

Dataset Dataset::prefetch(int batches) const {
  if (batches < 0) throw ConfigError(fmt::format("prefetch({}): the depth cannot be negative", batches));
  return Dataset(grow(plan_, PrefetchStage{batches}));
}

std::int64_t Dataset::global_batch() const {
  const StreamPlan plan = make_stream_plan(plan_);
  if (!plan.batch) throw ConfigError("the plan has no batches yet", "call batch() before global_batch()");
  return plan.batch->global_batch;
}

std::string Dataset::explain() const { return explain_plan(make_stream_plan(plan_)); }

std::string Dataset::explain(const DeviceGroup& devices, ConvertAt at, Residency resident) const {
  const StreamPlan plan = make_stream_plan(plan_);
  const DeviceSplit split = split_for_devices(plan, devices, at);
  const std::string text = explain_plan(plan, split);
  if (!plan.batch) return text;
  return text + explain_residency(choose_residency(plan, split, devices, {.residency = resident}));
}

bool Dataset::streamed() const { return source_of(plan_)->info().streamed; }

std::uint64_t Dataset::size() const {
  return plan_of_numbered(plan_, "Dataset::size()", "the number of records").examples_per_epoch();
}

bool Dataset::has_buckets() const {
  return std::ranges::any_of(stages_of(plan_), [](const Stage& stage) {
    const auto* batch = std::get_if<BatchStage>(&stage);
    return batch != nullptr && batch->buckets != nullptr;
  });
}

bool Dataset::is_ragged() const {
  bool ragged = false;
  for (const Stage& stage : stages_of(plan_)) {
    if (const auto* batch = std::get_if<BatchStage>(&stage)) ragged = batch->ragged != nullptr;
    if (std::holds_alternative<UnbatchStage>(stage)) ragged = false;
  }
  return ragged;
}

std::uint64_t Dataset::steps_per_epoch() const {
  const StreamPlan plan = plan_of_numbered(plan_, "Dataset::steps_per_epoch()", "the number of steps");
  if (!plan.batch) throw ConfigError("the plan has no batches yet", "call batch() before steps_per_epoch()");
  return plan.steps_per_epoch();
}

Fields Dataset::fields() const { return make_stream_plan(plan_).fields; }

std::string Dataset::reading() const { return describe_reading(*source_of(plan_)); }

SourcePtr Dataset::source() const { return source_of(plan_); }

Fields Dataset::source_fields() const {
  const StreamPlan plan = make_stream_plan(plan_);
  const StreamPlan* first = &plan;
  while (!first->parts.empty() && !first->zipped) first = first->parts.front().plan.get();
  return first->source->info().fields;
}

std::vector<SourceColumn> Dataset::columns() const { return source_of(plan_)->info().columns; }

std::vector<std::string> Dataset::classes() const { return make_stream_plan(plan_).source->info().classes; }

std::uint64_t Dataset::fingerprint() const { return make_stream_plan(plan_).fingerprint(); }

}  // namespace headrace
