#include "headrace/pipeline/plan/sample_program.h"

namespace headrace {
namespace {

std::vector<std::uint16_t> random_after_caches(const StreamPlan& plan) {
  std::vector<std::uint16_t> numbers;
  const std::size_t cached = plan.caches.empty() ? 0 : plan.caches.back().stages;
  for (const SampleStage& stage : std::span(plan.sample_stages).subspan(cached)) {
    const auto* planned = std::get_if<PlannedOperation>(&stage);
    if (planned != nullptr && is_random(planned->operation)) numbers.push_back(planned->number);
  }
  return numbers;
}

}  // namespace

SampleProgram::SampleProgram(const StreamPlan& plan)
    : fields_(plan.source->info().fields),
      parts_(plan.parts.empty() ? nullptr : std::make_unique<PartSamples>(plan)),
      chains_(plan, fields_),
      records_(plan.source->info().records) {
  if (parts_ == nullptr) labels_.emplace(*plan.source);
  if (parts_ != nullptr) parts_->add_stages(stages_);
  if (plan.source->info().images_checked) chains_.last().trust_images();
  chains_.add_stages(stages_);
  stages_.push_back({.name = "write rows"});
  is_single_ = parts_ == nullptr && chains_.last().are_single();
  random_operations_ = random_after_caches(plan);
}

void SampleProgram::keep_jpeg_indexes(MemoryBudget& budget) { chains_.last().keep_jpeg_indexes(records_, budget); }

void SampleProgram::name_spans(Trace& trace) {
  if (parts_ != nullptr) parts_->name_spans(trace);
  chains_.name_spans(trace);
}

bool SampleProgram::is_slow() const noexcept {
  return chains_.is_slow() || (parts_ != nullptr && !is_warm() && parts_->is_slow());
}

bool SampleProgram::only_copies() const noexcept {
  return is_single_ && !chains_.has_caches() && labels_->does_nothing() && chains_.last().does_nothing();
}

FoundSample SampleProgram::find_cached(std::uint64_t record, std::vector<std::byte>& scratch) const noexcept {
  return chains_.has_caches() ? chains_.find(record, scratch) : FoundSample{};
}

void SampleProgram::run_cached(const FoundSample& found, const StepContext& context, const Rows& rows) const {
  std::size_t made = 0;
  SampleView sample = chains_.run(found, context.record, context, made);
  write(sample, context, rows);
}

void SampleProgram::write(SampleView& sample, const StepContext& context, const Rows& rows) const {
  const SampleChains& last = chains_.last();
  if (!last.are_single()) return last.run_into(sample, context, rows);
  for (std::size_t i = 0; i < last.output().size(); ++i) last.run_field(i, sample[i], context, rows);
}

SampleView SampleProgram::view(const RecordView& record) const noexcept {
  SampleView fields;
  for (std::size_t i = 0; i < fields_.size(); ++i) fields[i] = view_of(fields_[i], record.fields[i]);
  return fields;
}

void SampleProgram::run_record(const RecordView& record, const StepContext& context, const Rows& rows) const {
  if (labels_) labels_->check(record);
  if (is_single_ && !chains_.has_caches()) {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      chains_.last().run_field(i, view_of(fields_[i], record.fields[i]), context, rows);
    }
    return;
  }
  std::size_t made = 0;
  SampleView sample = parts_ != nullptr ? parts_->run(record, context, made) : view(record);
  chains_.run(sample, context.record, context, made);
  write(sample, context, rows);
}

}  // namespace headrace
