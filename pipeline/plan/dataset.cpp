#include "headrace/pipeline/dataset.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/plan/index/length_buckets.h"
#include "headrace/pipeline/plan/placement.h"
#include "headrace/pipeline/plan/planner.h"

namespace headrace {
namespace {

constexpr std::uint64_t kMany = std::uint64_t{1} << 16;  // records, whose opening leaves memory worth returning

// The plan, of records that have numbers. Readers who do not know the call are told what it is for.
StreamPlan plan_of_numbered(const PlanPtr& plan, const char* call, const char* purpose) {
  StreamPlan result = make_stream_plan(plan);
  refuse_stream(*result.source, named_or(call, purpose));
  return result;
}

}  // namespace

Dataset Dataset::from(SourcePtr source) {
  if (source == nullptr) throw ConfigError("Dataset::from() was given no source");
  // Opening it may have taken several times what it keeps.
  if (source->info().records >= kMany) return_freed_memory();
  return Dataset(begin_plan({.source = std::move(source)}));
}

std::int64_t Dataset::global_batch() const {
  const StreamPlan plan = make_stream_plan(plan_);
  if (!plan.batch) throw ConfigError("the plan has no batches yet", "call batch() before global_batch()");
  return plan.batch->global_batch;
}

std::string Dataset::explain() const { return explain_plan(make_stream_plan(plan_)); }

std::string Dataset::explain(const DeviceGroup& devices, ConvertAt at, Residency resident,
                             ConvertAt decode) const {
  const StreamPlan plan = make_stream_plan(plan_);
  const DeviceSplit split = split_for_devices(plan, devices, at);
  std::string text = explain_plan(plan, split);
  if (!plan.batch) return text;
  const ResidentChoice residency = choose_residency(plan, split, devices, {.residency = resident});
  text += explain_residency(residency);
  const bool encoded = std::ranges::count(plan.source->info().fields, Encoding::kImage, &Field::encoding) > 0;
  return encoded ? text + explain_decoding(choose_decoding(plan, split, residency, devices, decode), decode)
                 : text;
}

bool Dataset::streamed() const { return source()->info().streamed; }

bool Dataset::one_pass() const { return streamed() && source()->sharded() == nullptr; }

std::uint64_t Dataset::size() const {
  return plan_of_numbered(plan_, "Dataset::size()", "the number of records").examples_per_epoch();
}

bool Dataset::has_buckets() const { return make_stream_plan(plan_).buckets != nullptr; }

bool Dataset::is_ragged() const { return make_stream_plan(plan_).ragged_batch != nullptr; }

std::uint64_t Dataset::steps_per_epoch() const {
  const StreamPlan plan = plan_of_numbered(plan_, "Dataset::steps_per_epoch()", "the number of steps");
  if (!plan.batch) throw ConfigError("the plan has no batches yet", "call batch() before steps_per_epoch()");
  return plan.steps_per_epoch();
}

Fields Dataset::fields() const { return make_stream_plan(plan_).fields; }

std::string Dataset::reading() const { return describe_reading(*source()); }

SourcePtr Dataset::source() const { return source_of(plan_).source; }

Fields Dataset::source_fields() const {
  const StreamPlan plan = make_stream_plan(plan_);
  const StreamPlan* first = &plan;
  while (!first->parts.empty() && !first->zipped) first = first->parts.front().plan.get();
  return first->source->info().fields;
}

std::vector<SourceColumn> Dataset::columns() const { return source()->info().columns; }

std::vector<std::string> Dataset::classes() const { return make_stream_plan(plan_).source->info().classes; }

std::uint64_t Dataset::fingerprint() const { return make_stream_plan(plan_).fingerprint(); }

}  // namespace headrace
