#include "headrace/pipeline/plan/evaluation_stages.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/plan/combination.h"

namespace headrace {
namespace {

constexpr std::int64_t kColours = 3;

}  // namespace

void refuse_stage(const std::string& why) {
  throw ConfigError(why, "call it on the data set of an evaluation, which has no such stage");
}

void refuse_code(const std::string& what) { refuse_stage(what + " is code, which JSON cannot hold"); }

EvaluationStages::EvaluationStages(const PlanPtr& plan) {
  begin(source_of(plan));
  for (const StagePtr& stage : stages_of(plan)) stage->evaluate(*this);
}

void EvaluationStages::begin(const PlanSource& source) {
  if (source.windowed != nullptr) refuse_stage("window() puts together the records of a data set");
  if (source.zipped != nullptr) refuse_stage("zip() puts together the records of several data sets");
  fields_ = source.source->info().fields;
  if (source.unpadded != nullptr) unpadded_ = source.unpadded->info().fields;
  if (source.combination != nullptr) {  // its parts were treated alike
    const Combination& combination = *source.combination;
    const EvaluationStages first(combination.parts.front().plan);
    kept_ = first.kept_;
    batch_ = first.batch_;
    padded_ = first.padded_;
    const auto text = [](const StagePtr& stage) { return stage->describe(); };
    for (const CombinedPart& part : combination.parts) {
      if (std::ranges::equal(EvaluationStages(part.plan).kept(), kept_, {}, text, text)) continue;
      refuse_stage("data sets that were filtered, batched or unbatched in different ways are combined");
    }
    if (std::holds_alternative<UnbatchRows>(combination.how)) keep(unbatch_stage());
    return;
  }
  for (const Field& field : fields_) {
    const bool pixels = field.encoding == Encoding::kRaw && field.dtype == DType::kU8 && field.shape.rank() == 3 &&
                        field.shape.back() == kColours && !field.shape.is_dynamic();
    if (!pixels) continue;
    keep(decode_stage({.height = field.shape[0], .width = field.shape[1]}));
    return;
  }
}

void EvaluationStages::keep_decode(const DecodeOptions& options) {
  decode_ = kept_.size();
  decode_options_ = options;
  as_decoded_ = true;
  keep(decode_stage(options));
}

void EvaluationStages::keep_batch(StagePtr stage, bool padded) {
  batch_ = kept_.size();
  padded_ = padded;
  keep(std::move(stage));
}

void EvaluationStages::undo_batch(StagePtr unbatch) {
  if (padded_) return keep(std::move(unbatch));
  kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(batch_));
}

bool EvaluationStages::keep_operation(const Operation& operation) {
  if (operation.definition().name() == nullptr) refuse_code(describe(operation));
  if (is_random(operation)) {
    leave_out(operation);
    return false;
  }
  fields_ = operation.definition().apply_to_sample(fields_);
  as_decoded_ = false;
  return true;
}

// Leaves out an operation that draws random numbers: an evaluation does without it.
void EvaluationStages::leave_out(const Operation& operation) {
  if (is_batch_level(operation)) return;
  Field& field = fields_[find_field(fields_, field_of(operation))];
  const std::optional<Field> left = operation.definition().undisturbed(field);
  if (!left || (!(*left == field) && !tell_size(left->shape))) {
    refuse_stage(describe(operation) + " draws which part of an image it shows, and of what size");
  }
  field = *left;
}

// Notes that decoded images have this shape. Returns false if something was done to them since.
bool EvaluationStages::tell_size(const Shape& shape) {
  if (!as_decoded_) return false;
  decode_options_.height = shape[0];
  decode_options_.width = shape[1];
  kept_[decode_] = decode_stage(decode_options_);
  return true;
}

std::vector<PadField> EvaluationStages::padding(const std::vector<PadField>& given) const {
  std::vector<PadField> all;
  for (const Field& before : unpadded_) {
    if (before.encoding != Encoding::kRaw || !before.shape.is_dynamic()) continue;
    const auto said = std::ranges::find(given, before.name, &PadField::field);
    if (!given.empty() && said == given.end()) continue;
    all.push_back({.field = before.name,
                   .length = fields_[find_field(fields_, before.name)].shape[0],
                   .value = said == given.end() ? std::uint8_t{0} : said->value});
  }
  return all;
}

}  // namespace headrace
