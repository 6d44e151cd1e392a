#include "headrace/pipeline/plan/evaluation_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/decode.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/plan/index/selection.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {
namespace {

constexpr std::int64_t kColours = 3;

[[noreturn]] void refuse_stage(const std::string& why) {
  throw ConfigError(why, "call it on the data set of an evaluation, which has no such stage");
}

[[noreturn]] void refuse_code(const std::string& what) { refuse_stage(what + " is code, which JSON cannot hold"); }

// Reads the stages one after another, with the fields that each leaves.
class EvaluationStages {
 public:
  std::vector<Stage> of(const PlanPtr& plan) {
    for (const Stage& stage : stages_of(plan)) std::visit(*this, stage);
    return std::move(kept_);
  }

  void operator()(const SourceStage& stage) {
    if (stage.windowed != nullptr) refuse_stage("window() puts together the records of a data set");
    if (stage.zipped != nullptr) refuse_stage("zip() puts together the records of several data sets");
    fields_ = stage.source->info().fields;
    if (stage.unpadded != nullptr) unpadded_ = stage.unpadded->info().fields;
    for (const Field& field : fields_) {
      const bool pixels = field.encoding == Encoding::kRaw && field.dtype == DType::kU8 &&
                          field.shape.rank() == 3 && field.shape.back() == kColours && !field.shape.is_dynamic();
      if (!pixels) continue;
      kept_.emplace_back(DecodeStage{{.height = field.shape[0], .width = field.shape[1]}});
      return;
    }
  }

  // Handles parts that were treated alike before they were combined.
  void operator()(const CombineStage& stage) {
    const Combination& combination = *stage.combination;
    kept_ = EvaluationStages().of(combination.parts.front().plan);
    for (const CombinedPart& part : combination.parts) {
      if (std::ranges::equal(EvaluationStages().of(part.plan), kept_, {}, describe_stage, describe_stage))
        continue;
      refuse_stage("data sets that were filtered, batched or unbatched in different ways are combined");
    }
    if (std::holds_alternative<UnbatchRows>(combination.how)) kept_.emplace_back(stage);
  }

  void operator()(const DecodeStage& stage) {
    for (Field& field : fields_) field = decoded_field(field, stage);
    decode_ = kept_.size();
    as_decoded_ = true;
    kept_.emplace_back(stage);
  }

  void operator()(const MapStage& stage) {
    MapStage kept;
    for (const Operation& operation : stage.operations) {
      if (operation.definition().name() == nullptr) refuse_code(describe(operation));
      if (is_random(operation)) {
        pass_over(operation);
      } else {
        fields_ = operation.definition().apply_to_sample(fields_);
        kept.operations.push_back(operation);
        as_decoded_ = false;
      }
    }
    if (!kept.operations.empty()) kept_.emplace_back(std::move(kept));
  }

  void operator()(const FilterStage& stage) {
    const RecordFilter& filter = stage.selection->filter();
    if (filter.keeps.target<LabelFilter>() == nullptr) refuse_code(describe(filter));
    kept_.emplace_back(stage);
  }

  void operator()(const EnumerateStage& stage) {
    fields_.push_back({.name = stage.options.field, .dtype = DType::kI64, .shape = {}});
    kept_.emplace_back(stage);
  }

  void operator()(const BatchStage& stage) {
    if (stage.buckets != nullptr) refuse_stage("bucket_by_length() makes batches of several shapes");
    BatchStage kept = stage;
    kept.options.drop_remainder = false;
    if (kept.pad) kept.pad = padding(*kept.pad);
    kept_.emplace_back(std::move(kept));
  }

  // The last batch() counts; a padded_batch() has changed the records.
  void operator()(const UnbatchStage& stage) {
    const auto batch = std::ranges::find_if(
        kept_.rbegin(), kept_.rend(), [](const Stage& kept) { return std::holds_alternative<BatchStage>(kept); });
    if (std::get<BatchStage>(*batch).pad) {
      kept_.emplace_back(stage);
    } else {
      kept_.erase(std::next(batch).base());
    }
  }

  // Chooses or orders records, or keeps them.
  template <typename Other>
  void operator()(const Other& /*stage*/) {}

 private:
  static std::string describe_stage(const Stage& stage) { return describe(stage); }

  // Leaves out an operation that draws random numbers: an evaluation does without it.
  void pass_over(const Operation& operation) {
    if (is_batch_level(operation)) return;
    Field& field = fields_[find_field(fields_, field_of(operation))];
    const std::optional<Field> left = operation.definition().undisturbed(field);
    if (!left || (!(*left == field) && !tell_size(left->shape))) {
      refuse_stage(describe(operation) + " draws which part of an image it shows, and of what size");
    }
    field = *left;
  }

  // The images measure this as they are decoded; false where they are not known to.
  bool tell_size(const Shape& shape) {
    if (!as_decoded_) return false;
    DecodeOptions& options = std::get<DecodeStage>(kept_[decode_]).options;
    options.height = shape[0];
    options.width = shape[1];
    return true;
  }

  // Fields of varying length, to the lengths that were found.
  std::vector<PadField> padding(const std::vector<PadField>& given) const {
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

  std::vector<Stage> kept_;
  Fields fields_, unpadded_;
  std::size_t decode_ = 0;   // where in kept_ it stands
  bool as_decoded_ = false;  // nothing was done to the images since
};

}  // namespace

std::vector<Stage> evaluation_stages(const PlanPtr& plan) { return EvaluationStages().of(plan); }

}  // namespace headrace
