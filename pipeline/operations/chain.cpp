#include "headrace/pipeline/operations/chain.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/prefetch.h"

namespace headrace {
namespace {

constexpr std::string_view kDecodeAnd = "decode and ";  // what a step is called that does both

bool concerns(const PlannedOperation& planned, const Field& field) {
  return field.name == field_of(planned.operation);
}

}  // namespace

StepError name_step(const std::string& name, const std::exception& cause) {
  if (const auto* error = dynamic_cast<const Error*>(&cause)) {
    return {error->code(), name, error->message(), error->hint()};
  }
  const bool memory = dynamic_cast<const std::bad_alloc*>(&cause) != nullptr;
  return {memory ? ErrorCode::kOutOfMemory : ErrorCode::kInvalidArgument, name, cause.what()};
}

Chain::Chain(const Field& input, std::span<const SampleStage> stages, ChainPlace place) : output_(input) {
  for (const SampleStage& stage : stages) {
    if (const auto* planned = std::get_if<PlannedOperation>(&stage)) {
      if (concerns(*planned, output_)) add(*planned, place);
    } else if (output_.encoding == Encoding::kImage) {
      const auto& decode = std::get<DecodeStage>(stage);
      output_ = decoded_field(output_, decode);
      steps_.push_back({.step = DecodeStep{decode.options}, .name = "decode"});
    }
  }
}

void Chain::add(const PlannedOperation& planned, ChainPlace place) {
  const Field before = output_;
  output_ = apply_to_field(planned.operation, before);
  if (fuse(planned)) return;
  const std::string name = describe(planned.operation);
  if (const auto* crop = std::get_if<RandomResizedCrop>(&planned.operation)) {
    steps_.push_back({.step = RandomResizedCropStep{.options = *crop, .number = planned.number}, .name = name});
  } else if (const auto* resize = std::get_if<Resize>(&planned.operation)) {
    steps_.push_back({.step = ResizeStep{*resize}, .name = name});
  } else if (const auto* user = std::get_if<UserMap>(&planned.operation)) {
    steps_.push_back(
        {.step = UserStep{.map = *user, .number = planned.number, .cached = place == ChainPlace::kBeforeCache},
         .name = "map user_map '" + user->name + "'"});
  } else if (const auto* colors = std::get_if<ColorJitter>(&planned.operation)) {
    steps_.push_back({.step = ColorJitterStep{.options = *colors, .number = planned.number}, .name = name});
  } else if (const auto* tone = std::get_if<BrightnessContrast>(&planned.operation)) {
    steps_.push_back({.step = ToneStep{.options = *tone, .number = planned.number}, .name = name});
  } else if (const auto* one_hot = std::get_if<OneHot>(&planned.operation)) {
    steps_.push_back({.step = OneHotStep{*one_hot}, .name = name});
  } else {
    auto* pass = steps_.empty() ? nullptr : std::get_if<PixelStep>(&steps_.back().step);
    if (pass != nullptr && pass->add(planned, before)) {
      steps_.back().name += " | " + name;
      return;
    }
    PixelStep fresh(before);
    fresh.add(planned, before);
    steps_.push_back({.step = std::move(fresh), .name = name});
  }
}

bool Chain::decodes_window(const AnyStep& step) noexcept {
  const auto* random = std::get_if<RandomResizedCropStep>(&step);
  const auto* center = std::get_if<ResizeAndCropStep>(&step);
  return (random != nullptr && random->encoded) || (center != nullptr && center->encoded);
}

const DecodeStep* Chain::decode_before() const noexcept {
  return steps_.empty() ? nullptr : std::get_if<DecodeStep>(&steps_.back().step);
}

bool Chain::fuse(const PlannedOperation& planned) {
  const std::string name = describe(planned.operation);
  if (const auto* random = std::get_if<RandomResizedCrop>(&planned.operation); random != nullptr) {
    const DecodeStep* decode = decode_before();
    if (decode == nullptr) return false;
    const EncodedImages encoded{.options = decode->options};
    steps_.back() = {
        .step = RandomResizedCropStep{.options = *random, .number = planned.number, .encoded = encoded},
        .name = std::string(kDecodeAnd) + name};
    return true;
  }
  const auto* crop = std::get_if<CenterCrop>(&planned.operation);
  const auto* resize = steps_.empty() ? nullptr : std::get_if<ResizeStep>(&steps_.back().step);
  if (crop == nullptr || resize == nullptr) return false;
  ResizeAndCropStep step{.resize = resize->options, .crop = *crop};
  std::string both = steps_.back().name + " | " + name;
  steps_.pop_back();
  if (const DecodeStep* decode = decode_before()) {
    step.encoded = EncodedImages{.options = decode->options};
    both.insert(0, kDecodeAnd);
    steps_.pop_back();
  }
  steps_.push_back({.step = std::move(step), .name = std::move(both)});
  return true;
}

bool Chain::is_slow() const noexcept {
  const auto takes_long = [](const NamedStep& named) {
    return !std::holds_alternative<PixelStep>(named.step) &&
           !std::holds_alternative<ColorJitterStep>(named.step) && !std::holds_alternative<ToneStep>(named.step) &&
           !std::holds_alternative<OneHotStep>(named.step);
  };
  return std::any_of(steps_.begin(), steps_.end(), takes_long);
}

void Chain::keep_maps(std::uint64_t records, MemoryBudget& budget) {
  for (NamedStep& named : steps_) {
    if (!decodes_window(named.step)) continue;
    const auto maps = std::make_shared<JpegMaps>(records, budget);
    if (auto* crop = std::get_if<RandomResizedCropStep>(&named.step)) crop->encoded->maps = maps;
    if (auto* crop = std::get_if<ResizeAndCropStep>(&named.step)) crop->encoded->maps = maps;
  }
}

void Chain::add_stages(std::vector<StageName>& stages) {
  for (NamedStep& named : steps_) {
    const bool fused = decodes_window(named.step);
    const bool decodes = fused || std::holds_alternative<DecodeStep>(named.step);
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
  const FieldView result = run_named(named, in, context, output);
  const std::uint64_t end = now_ns();
  context.scratch->stamp_ns = end;  // the next step begins: one look at the clock a step
  const bool fused = named.decode != named.stage;
  const std::uint64_t decoding = fused ? context.scratch->decode_ns - decoded : 0;
  context.samples[named.stage].items = 1;
  context.samples[named.stage].ns += end - begin - decoding;
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
                           StepOutput& output) const {
  try {
    if (const auto* pass = std::get_if<PixelStep>(&named.step)) return pass->run(in, context, output);
    if (const auto* one_hot = std::get_if<OneHotStep>(&named.step)) return one_hot->run(in, context, output);
    context.probe->begin(named.name, context.record);
    const FieldView result =
        std::visit([&](const auto& step) { return step.run(in, context, output); }, named.step);
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
  FieldView value = in;
  for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
    value = run_step(i, value, context, StepOutput(context.scratch->results[i % 2]));
  }
  run_step(steps_.size() - 1, value, context, StepOutput(row));
}

FieldView Chain::run(const FieldView& in, const StepContext& context) const {
  FieldView value = in;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    value = run_step(i, value, context, StepOutput(context.scratch->results[i % 2]));
  }
  return value;
}

}  // namespace headrace
