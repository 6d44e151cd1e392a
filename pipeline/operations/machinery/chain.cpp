#include "headrace/pipeline/operations/machinery/chain.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/memory.h"
#include "headrace/pipeline/operations/decode.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/operations/machinery/encoded_image.h"
#include "headrace/pipeline/operations/machinery/pixel_step.h"

namespace headrace {
namespace {

bool concerns(const PlannedOperation& planned, const Field& field) {
  return field.name == field_of(planned.operation);
}

}  // namespace

StepError name_step(const std::string& name, const std::exception& cause) {
  if (const auto* error = dynamic_cast<const Error*>(&cause)) {
    return {error->code(), name, error->message(), error->hint()};
  }
  if (is_bare_refusal(cause)) return name_step(name, explain_refusal(cause, "a sample"));
  return {ErrorCode::kInvalidArgument, name, cause.what()};
}

Chain::Chain(const Field& input, std::span<const SampleStage> stages, ChainPlace place) : output_(input) {
  StepList steps;
  for (const SampleStage& stage : stages) {
    if (const auto* planned = std::get_if<PlannedOperation>(&stage)) {
      if (concerns(*planned, output_)) add(*planned, place, steps);
    } else if (output_.encoding == Encoding::kImage) {
      const auto& decode = std::get<DecodeStage>(stage);
      if (is_mask(output_)) {
        steps.add(std::make_unique<DecodeMaskStep>(decode), "decode masks");
      } else {
        steps.add(std::make_unique<DecodeStep>(decode), "decode");
      }
      output_ = decoded_field(output_, decode);
    }
  }
  steps_ = steps.take();
}

void Chain::add(const PlannedOperation& planned, ChainPlace place, StepList& steps) {
  const OperationDefinition& operation = planned.operation.definition();
  const OperationPlace at{
      .number = planned.number, .before = output_, .cached = place == ChainPlace::kBeforeCache};
  output_ = operation.apply(at.before);
  compile_step(steps, operation, at);
}

bool Chain::is_slow() const noexcept { return std::ranges::any_of(steps_, &NamedStep::takes_long); }

void Chain::keep_jpeg_indexes(std::uint64_t records, MemoryBudget& budget) {
  for (NamedStep& named : steps_) {
    if (EncodedImages* images = named.step->encoded_images()) {
      images->jpegs = std::make_shared<JpegIndexes>(records, budget);
    }
  }
}

void Chain::trust_images() {
  for (NamedStep& named : steps_) {
    if (EncodedImages* images = named.step->encoded_images()) images->checked = true;
  }
}

void Chain::add_stages(std::vector<StageName>& stages) {
  for (NamedStep& named : steps_) {
    const bool fused = named.step->encoded_images() != nullptr;
    const bool decodes = fused || dynamic_cast<const DecodeStep*>(named.step.get()) != nullptr;
    named.decode = stages.size();
    if (decodes) stages.push_back({.name = "decode", .kind = StageKind::kDecode});
    named.stage = fused || !decodes ? stages.size() : named.decode;
    if (fused || !decodes) stages.push_back({.name = fused ? named.name.substr(kDecodeAnd.size()) : named.name});
  }
}

void Chain::name_spans(Trace& trace) {
  for (NamedStep& named : steps_) named.span = trace.keep(named.name);
}

FieldView Chain::run_step(std::size_t index, const FieldView& in, const StepContext& context,
                          StepOutput output) const {
  const NamedStep& named = steps_[index];
  if (context.samples == nullptr) return run_named(named, in, context, output);
  return run_timed(named, in, context, output);
}

FieldView Chain::run_timed(const NamedStep& named, const FieldView& in, const StepContext& context,
                           StepOutput& output) const {
  const std::uint64_t decoded = context.scratch->decode_ns, begin = context.scratch->stamp_ns;
  const std::uint64_t bytes = context.scratch->decoded_bytes;
  const FieldView result = run_named(named, in, context, output);
  const std::uint64_t end = now_ns();
  context.scratch->stamp_ns = end;  // the next step begins: one clock reading per step
  const bool fused = named.decode != named.stage;
  const std::uint64_t decoding = fused ? context.scratch->decode_ns - decoded : 0;
  context.samples[named.stage].items = 1;
  context.samples[named.stage].ns += end - begin - decoding;
  context.samples[named.decode].decoded_bytes += context.scratch->decoded_bytes - bytes;
  if (fused) {
    context.samples[named.decode].items = 1;
    context.samples[named.decode].ns += decoding;
  }
  if (context.trace != nullptr) {
    context.trace->add({.name = named.span, .begin_ns = begin, .end_ns = end, .batch = context.batch, .items = 1});
  }
  return result;
}

FieldView Chain::run_named(const NamedStep& named, const FieldView& in, const StepContext& context,
                           StepOutput& output) {
  try {
    if (!named.takes_long) return named.step->run(in, context, output);
    context.probe->begin(named.name, context.record);
    const FieldView result = named.step->run(in, context, output);
    ImageNotes& notes = context.scratch->notes;
    if (!notes.warning.empty() && notes.step.empty()) notes.step = named.name;
    return result;
  } catch (const std::exception& error) {
    throw name_step(named.name, error);
  }
}

void Chain::run_into(const FieldView& in, const StepContext& context, std::span<std::byte> row) const {
  if (steps_.empty()) {
    if (in.bytes.size() != row.size()) {
      throw Error(ErrorCode::kDataCorrupt, "field '" + output_.name + "' has " + std::to_string(in.bytes.size()) +
                                               " bytes instead of " + std::to_string(row.size()));
    }
    if (row.size() > sizeof(std::int64_t)) prefetch(context.ahead);
    std::memcpy(row.data(), in.bytes.data(), row.size());
    return;
  }
  if (steps_.size() == 1) {  // its view is not copied
    run_step(0, in, context, StepOutput(row));
    return;
  }
  FieldView value = in;
  for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
    value = run_step(i, value, context, StepOutput(*context.scratch, context.scratch->results[i % 2]));
  }
  run_step(steps_.size() - 1, value, context, StepOutput(row));
}

FieldView Chain::run(const FieldView& in, const StepContext& context) const {
  FieldView value = in;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    value = run_step(i, value, context, StepOutput(*context.scratch, context.scratch->results[i % 2]));
  }
  return value;
}

}  // namespace headrace
