#include "headrace/pipeline/plan/sample_program.h"

#include <algorithm>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/rng.h"
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

// Differs for files that are alike in names, sizes and times. What lies on a disk was perhaps made of files that
// are gone: their content tells. What lies in memory is of files that this process opened: their path does,
// unread.
std::uint64_t tell_apart(const Source& source, bool resident_cache) {
  if (!resident_cache) return sample_content(source).value_or(0);
  return source.info().revision || lacks_identity(source.info()) ? xxh3(source.info().name) : 0;
}

std::optional<SampleChains> compile_before_cache(const StreamPlan& plan) {
  if (plan.cache == nullptr) return std::nullopt;
  return SampleChains(plan.source->info().fields, std::span(plan.sample_stages).first(plan.cached_stages),
                      ChainPlace::kBeforeCache);
}

}  // namespace

FieldView view_of(const Field& field, std::span<const std::byte> bytes) noexcept {
  if (field.encoding == Encoding::kImage) {
    return {.bytes = bytes, .shape = Shape{static_cast<std::int64_t>(bytes.size())}};
  }
  if (!field.shape.is_dynamic()) return {.bytes = bytes, .shape = field.shape};
  return {.bytes = bytes, .shape = shape_of_length(field.shape, size_of(field.dtype), bytes.size())};
}

SampleProgram::SampleProgram(const StreamPlan& plan)
    : fields_(plan.source->info().fields),
      cache_(plan.cache),
      before_(compile_before_cache(plan)),
      after_(before_ ? before_->output() : fields_, std::span(plan.sample_stages).subspan(plan.cached_stages),
             ChainPlace::kAfterCache),
      records_(plan.source->info().records),
      labels_(*plan.source),
      slow_before_cache_(before_ && before_->is_slow()),
      slow_after_cache_(after_.is_slow()) {
  if (before_) before_->add_stages(stages_);
  after_.add_stages(stages_);
  stages_.push_back({.name = "write rows"});
  if (cache_ == nullptr) return;
  cache_->bind(mix_seed(plan.cache_fingerprint(), tell_apart(*plan.source, cache_->resident())), records_);
}

void SampleProgram::keep_jpeg_indexes(MemoryBudget& budget) { after_.keep_jpeg_indexes(records_, budget); }

void SampleProgram::name_spans(Trace& trace) {
  if (before_) before_->name_spans(trace);
  after_.name_spans(trace);
}

bool SampleProgram::is_warm() const noexcept {
  return cache_ != nullptr && cache_->counters().records == records_;
}

bool SampleProgram::only_copies() const noexcept {
  return cache_ == nullptr && labels_.does_nothing() && after_.does_nothing();
}

std::span<const std::byte> SampleProgram::find_cached(std::uint64_t record,
                                                      std::vector<std::byte>& scratch) const noexcept {
  return cache_ != nullptr ? cache_->find(record, scratch) : std::span<const std::byte>{};
}

void SampleProgram::run_cached(std::span<const std::byte> sample, const StepContext& context,
                               const Rows& rows) const {
  CachedSampleReader reader(sample);
  const std::size_t count = before_->output().size();
  if (after_.are_single()) {
    for (std::size_t i = 0; i < count; ++i) after_.run_field(i, reader.next(), context, rows[i]);
    return;
  }
  SampleView fields;
  for (std::size_t i = 0; i < count; ++i) fields[i] = reader.next();
  after_.run_into(fields, context, rows);
}

SampleView SampleProgram::view(const RecordView& record) const noexcept {
  SampleView fields;
  for (std::size_t i = 0; i < fields_.size(); ++i) fields[i] = view_of(fields_[i], record.fields[i]);
  return fields;
}

void SampleProgram::run_record(const RecordView& record, const StepContext& context, const Rows& rows) const {
  labels_.check(record);
  if (cache_ == nullptr && after_.are_single()) {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      after_.run_field(i, view_of(fields_[i], record.fields[i]), context, rows[i]);
    }
    return;
  }
  SampleView fields = view(record);
  if (cache_ == nullptr) return after_.run_into(fields, context, rows);
  std::vector<std::byte>& sample = context.scratch->sample;
  std::size_t used = 0;
  before_->run(fields, context, [&](std::size_t, const FieldView& field) {
    const std::size_t more = appended_bytes(field);
    if (sample.capacity() < used + more) context.scratch->charge(more);
    used = append_field(sample, used, field);
  });
  const std::span<const std::byte> whole = std::span(sample).first(used);
  cache_->insert(context.record, whole);
  if (context.samples != nullptr) context.scratch->stamp_ns = now_ns();  // keeping a sample is no step of the plan
  run_cached(whole, context, rows);
}

}  // namespace headrace
