#include "headrace/pipeline/operations/machinery/sample_chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/encoded_image.h"

namespace headrace {
namespace {

std::vector<Chain> chains_of(const Fields& input, std::span<const SampleStage> stages, ChainPlace place) {
  std::vector<Chain> chains;
  for (const Field& field : input) chains.emplace_back(field, stages, place);
  return chains;
}

Fields outputs_of(const std::vector<Chain>& chains) {
  Fields fields;
  for (const Chain& chain : chains) fields.push_back(chain.output());
  return fields;
}

bool is_joint(const SampleStage& stage) {
  const auto* planned = std::get_if<PlannedOperation>(&stage);
  return planned != nullptr && planned->operation.definition().spans_fields();
}

}  // namespace

SampleChains::SampleChains(const Fields& input, std::span<const SampleStage> stages, ChainPlace place)
    : output_(input) {
  for (;;) {
    const auto next = std::ranges::find_if(stages, is_joint);
    const auto before = static_cast<std::size_t>(next - stages.begin());
    std::vector<Chain> chains = chains_of(output_, stages.first(before), place);
    output_ = outputs_of(chains);
    if (next == stages.end()) {
      chains_ = std::move(chains);
      break;
    }
    const auto& planned = std::get<PlannedOperation>(*next);
    const OperationDefinition& operation = planned.operation.definition();
    joints_.push_back({.before = std::move(chains),
                       .step = operation.create_step(planned.number, output_),
                       .name = "map " + operation.describe()});
    output_ = operation.apply_to_sample(output_);
    stages = stages.subspan(before + 1);
  }
  for (const Field& field : output_) {
    const bool fixed = !field.shape.is_dynamic() && field.encoding == Encoding::kRaw;
    row_bytes_.push_back(fixed ? static_cast<std::size_t>(field.shape.elements()) * size_of(field.dtype) : 0);
  }
}

bool SampleChains::is_slow() const noexcept {
  return !joints_.empty() || std::ranges::any_of(chains_, &Chain::is_slow);
}

bool SampleChains::does_nothing() const noexcept {
  return joints_.empty() && std::ranges::all_of(chains_, &Chain::does_nothing);
}

template <typename Use>
void SampleChains::with_each_chain(const Use& use) {
  for (Joint& joint : joints_) std::ranges::for_each(joint.before, use);
  std::ranges::for_each(chains_, use);
}

void SampleChains::keep_jpeg_indexes(std::uint64_t records, MemoryBudget& budget) {
  with_each_chain([&](Chain& chain) { chain.keep_jpeg_indexes(records, budget); });
}

void SampleChains::trust_images() {
  with_each_chain([](Chain& chain) { chain.trust_images(); });
}

void SampleChains::add_stages(std::vector<StageName>& stages) {
  for (Joint& joint : joints_) {
    for (Chain& chain : joint.before) chain.add_stages(stages);
    joint.stage = stages.size();
    stages.push_back({.name = joint.name});
  }
  for (Chain& chain : chains_) chain.add_stages(stages);
}

void SampleChains::name_spans(Trace& trace) {
  for (Joint& joint : joints_) {
    for (Chain& chain : joint.before) chain.name_spans(trace);
    joint.span = trace.keep(joint.name);
  }
  for (Chain& chain : chains_) chain.name_spans(trace);
}

void SampleChains::run_into(SampleView& sample, const StepContext& context, const SampleRows& rows) const {
  for (const Joint& joint : joints_) run_joint(joint, sample, context);
  for (std::size_t i = 0; i < chains_.size(); ++i) run_field(i, sample[i], context, rows);
}

// Writes the entries to the beginning of the row, and their number to the field of lengths.
void SampleChains::run_ragged(std::size_t field, const FieldView& in, const StepContext& context,
                              const SampleRows& rows) const {
  const FieldView result = chains_[field].run(in, context);
  const std::size_t bytes = result.bytes.size(), room = context.row_bytes[field];
  const std::size_t entry = context.ragged->entry_bytes[field];
  if (bytes % entry != 0 || bytes > room) {
    throw Error(ErrorCode::kDataCorrupt,
                fmt::format("field '{}' has {} bytes, in a ragged batch of up to {} entries of {} bytes each",
                            output_[field].name, bytes, room / entry, entry),
                bytes > room ? "raise its max_length in ragged_batch()" : "");
  }
  if (bytes > 0) std::memcpy(rows[field], result.bytes.data(), bytes);
  const auto entries = static_cast<std::int64_t>(bytes / entry);
  std::memcpy(rows[context.ragged->lengths[field]], &entries, sizeof entries);
}

void SampleChains::run_joint(const Joint& joint, SampleView& sample, const StepContext& context) const {
  for (std::size_t i = 0; i < joint.before.size(); ++i) {
    if (joint.before[i].does_nothing()) continue;
    const FieldView result = joint.before[i].run(sample[i], context);
    // The next chain overwrites this one's result.
    const std::span<std::byte> kept = context.scratch->grow(context.scratch->fields[i], result.bytes.size());
    std::ranges::copy(result.bytes, kept.begin());
    sample[i] = {.bytes = kept, .shape = result.shape};
  }
  if (context.samples == nullptr) return run_step(joint, sample, context);
  const std::uint64_t begin = context.scratch->stamp_ns;
  run_step(joint, sample, context);
  const std::uint64_t end = now_ns();
  context.scratch->stamp_ns = end;
  context.samples[joint.stage].items = 1;
  context.samples[joint.stage].ns += end - begin;
  if (context.trace != nullptr) {
    context.trace->add({.name = joint.span, .begin_ns = begin, .end_ns = end, .batch = context.batch, .items = 1});
  }
}

void SampleChains::run_step(const Joint& joint, SampleView& sample, const StepContext& context) {
  context.probe->begin(joint.name, context.record);
  try {
    joint.step->run(sample, context);
  } catch (const std::exception& error) {
    throw name_step(joint.name, error);
  }
}

}  // namespace headrace
