#include "headrace/pipeline/plan/sample_program.h"
#include "headrace/pipeline/plan/content_sample.h"

#include <algorithm>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/plan/cached_sample.h"
#include "headrace/pipeline/plan/content_sample.h"

namespace headrace {
namespace {

// The shape of a raw field whose first extent alone differs from record to record.
Shape shape_of_length(const Shape& shape, std::size_t element_bytes, std::size_t bytes) {
  const Shape rest = shape.without_front();
  const std::size_t one = static_cast<std::size_t>(rest.elements()) * element_bytes;
  return rest.with_front(one == 0 ? 0 : static_cast<std::int64_t>(bytes / one));
}

}  // namespace

SampleProgram::SampleProgram(const StreamPlan& plan)
    : cache_(plan.cache), records_(plan.source->info().records), labels_(*plan.source) {
  const std::span<const SampleStage> stages(plan.sample_stages);
  for (const Field& input : plan.source->info().fields) {
    FieldChains field;
    field.source_shape = input.shape;
    field.element_bytes = size_of(input.dtype);
    field.encoded = input.encoding == Encoding::kImage;
    Field between = input;
    if (cache_ != nullptr) {
      field.before = std::make_unique<Chain>(input, stages.first(plan.cached_stages), ChainPlace::kBeforeCache);
      between = field.before->output();
      slow_before_cache_ = slow_before_cache_ || field.before->is_slow();
    }
    field.after = std::make_unique<Chain>(between, stages.subspan(plan.cached_stages), ChainPlace::kAfterCache);
    const Field& output = field.after->output();
    field.row_bytes = static_cast<std::size_t>(output.shape.elements()) * size_of(output.dtype);
    slow_after_cache_ = slow_after_cache_ || field.after->is_slow();
    fields_.push_back(std::move(field));
  }
  for (FieldChains& field : fields_) {
    if (field.before != nullptr) field.before->add_stages(stages_);
    field.after->add_stages(stages_);
  }
  stages_.push_back({.name = "write rows"});
  if (cache_ == nullptr) return;
  // What lies on a disk may be of other files that are alike in names, sizes and times.
  const std::uint64_t content = cache_->resident() ? 0 : sample_content(*plan.source);
  cache_->bind(mix_seed(plan.cache_fingerprint(), content), records_);
}

void SampleProgram::keep_maps(MemoryBudget& budget) {
  for (FieldChains& field : fields_) field.after->keep_maps(records_, budget);
}

void SampleProgram::name_spans(Trace& trace) {
  for (FieldChains& field : fields_) {
    if (field.before != nullptr) field.before->name_spans(trace);
    field.after->name_spans(trace);
  }
}

bool SampleProgram::is_warm() const noexcept {
  return cache_ != nullptr && cache_->counters().records == records_;
}

bool SampleProgram::only_copies() const noexcept {
  return cache_ == nullptr && labels_.does_nothing() &&
         std::ranges::all_of(fields_, [](const FieldChains& field) { return field.after->does_nothing(); });
}

std::span<const std::byte> SampleProgram::find_cached(std::uint64_t record,
                                                      std::vector<std::byte>& scratch) const noexcept {
  return cache_ != nullptr ? cache_->find(record, scratch) : std::span<const std::byte>{};
}

FieldView SampleProgram::source_view(const FieldChains& field, std::span<const std::byte> bytes) const noexcept {
  if (!field.encoded && !field.source_shape.is_dynamic()) return {.bytes = bytes, .shape = field.source_shape};
  if (!field.encoded)
    return {.bytes = bytes, .shape = shape_of_length(field.source_shape, field.element_bytes, bytes.size())};
  return {.bytes = bytes, .shape = Shape{static_cast<std::int64_t>(bytes.size())}};
}

void SampleProgram::run_cached(std::span<const std::byte> sample, const StepContext& context,
                               const Rows& rows) const {
  CachedSampleReader reader(sample);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    fields_[i].after->run_into(reader.next(), context, {rows[i], fields_[i].row_bytes});
  }
}

void SampleProgram::run_record(const RecordView& record, const StepContext& context, const Rows& rows) const {
  labels_.check(record);
  if (cache_ == nullptr) {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const FieldChains& field = fields_[i];
      field.after->run_into(source_view(field, record.fields[i]), context, {rows[i], field.row_bytes});
    }
    return;
  }
  std::vector<std::byte>& sample = context.scratch->sample;
  std::size_t used = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const FieldChains& field = fields_[i];
    used = append_field(sample, used, field.before->run(source_view(field, record.fields[i]), context));
  }
  const std::span<const std::byte> whole = std::span(sample).first(used);
  cache_->insert(context.record, whole);
  if (context.samples != nullptr) context.scratch->stamp_ns = now_ns();  // keeping a sample is no step of the plan
  run_cached(whole, context, rows);
}

}  // namespace headrace
