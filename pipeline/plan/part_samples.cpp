#include "headrace/pipeline/plan/part_samples.h"

#include <algorithm>
#include <array>

namespace headrace {

PartSamples::Part::Part(const ProcessedPart& of)
    : planned(of),
      labels(*of.plan->source),
      inner(of.plan->parts.empty() ? nullptr : std::make_unique<PartSamples>(*of.plan)),
      chains(*of.plan, of.plan->source->info().fields) {}

PartSamples::PartSamples(const StreamPlan& plan) : zipped_(plan.zipped) {
  for (const ProcessedPart& part : plan.parts) parts_.emplace_back(part);
}

SampleView PartSamples::run(const RecordView& record, const StepContext& context, std::size_t& made) const {
  return run_numbered(record, context.record, context, made);
}

SampleView PartSamples::run_numbered(const RecordView& record, std::uint64_t number, const StepContext& context,
                                     std::size_t& made) const {
  if (!zipped_) {
    const auto after =
        std::ranges::upper_bound(parts_, number, {}, [](const Part& part) { return part.planned.first_record; });
    const Part& part = *(after - 1);
    return run_part(part, record, number - part.planned.first_record, context, made);
  }
  SampleView joined;
  std::size_t fields = 0;
  for (const Part& part : parts_) {
    RecordView own;
    for (std::size_t i = 0; i < part.planned.plan->source->info().fields.size(); ++i) {
      own.fields[i] = record.fields[part.planned.first_field + i];
    }
    const std::uint64_t of_part = part.planned.record_at ? part.planned.record_at(number) : number;
    StepContext numbered = context;
    std::array<std::uint64_t, kMaxFields> numbers;
    if (part.planned.write_numbers) {
      part.planned.write_numbers(number, numbers.data());
      numbered.numbers = numbers.data();
    }
    const SampleView sample = run_part(part, own, of_part, numbered, made);
    for (std::size_t i = 0; i < part.planned.plan->fields.size(); ++i) joined[fields++] = sample[i];
  }
  return joined;
}

SampleView PartSamples::run_part(const Part& part, const RecordView& fields, std::uint64_t number,
                                 const StepContext& context, std::size_t& made) const {
  std::span<const std::byte> bytes;
  if (part.chains.has_caches()) {
    auto& samples = context.scratch->samples_made;
    if (samples.size() == made) samples.emplace_back();
    const FoundSample found = part.chains.find(number, samples[made++]);
    if (!found.empty()) {
      const SampleView sample = part.chains.run(found, number, context, made);
      return make_sample(part.chains.last(), sample, context, made, bytes);
    }
  }
  SampleView sample;
  if (part.inner != nullptr) {
    sample = part.inner->run_numbered(fields, number, context, made);
  } else {
    part.labels.check(fields);
    const Fields& known = part.planned.plan->source->info().fields;
    for (std::size_t i = 0; i < known.size(); ++i) sample[i] = view_of(known[i], fields.fields[i]);
  }
  part.chains.run(sample, number, context, made);
  return make_sample(part.chains.last(), sample, context, made, bytes);
}

bool PartSamples::is_slow() const noexcept {
  return std::ranges::any_of(parts_, [](const Part& part) {
    return part.chains.is_slow() || (part.inner != nullptr && part.inner->is_slow());
  });
}

void PartSamples::add_stages(std::vector<StageName>& stages) {
  for (Part& part : parts_) {
    if (part.inner != nullptr) part.inner->add_stages(stages);
    part.chains.add_stages(stages);
  }
}

void PartSamples::name_spans(Trace& trace) {
  for (Part& part : parts_) {
    if (part.inner != nullptr) part.inner->name_spans(trace);
    part.chains.name_spans(trace);
  }
}

}  // namespace headrace
