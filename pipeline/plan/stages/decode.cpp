// decode(): every encoded image becomes pixels.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/operations/machinery/sample_stage.h"
#include "headrace/pipeline/plan/evaluation_stages.h"
#include "headrace/pipeline/plan/first_image.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/plan/stages/stage_calls.h"

namespace headrace {
namespace {

constexpr const char* kDecode = "decode";

class DecodeImages final : public Stage {
 public:
  explicit DecodeImages(DecodeStage stage) : stage_(std::move(stage)) {}

  std::string describe() const override { return headrace::describe(stage_); }
  nlohmann::ordered_json to_json(const PlanParts& /*parts*/, const std::string& path) const override {
    return plan_json::named_options(path, kDecode, stage_.options);
  }
  void plan_into(PlanBuilder& plan) const override {
    bool found = false;
    for (Field& field : plan.plan().fields) {
      if (field.encoding != Encoding::kImage) continue;
      field = decoded_field(field, stage_);
      found = true;
    }
    plan.want_before_mixing("decode()");
    if (!found)
      throw ConfigError("decode(): no field is an encoded image", "remove decode(), or decode only once");
    plan.plan().sample_stages.emplace_back(stage_);
  }
  void evaluate(EvaluationStages& stages) const override {
    for (Field& field : stages.fields()) field = decoded_field(field, stage_);
    stages.keep_decode(stage_.options);
  }
  StagePtr sized(const Source& source) const override {
    if (stage_.options.height != 0) return nullptr;
    auto sized = sized_by_first_image(stage_, source);
    return sized ? std::make_shared<const DecodeImages>(std::move(*sized)) : nullptr;
  }
  StageTraits traits() const override { return {.processes = true}; }

 private:
  DecodeStage stage_;
};

}  // namespace

StagePtr decode_stage(const DecodeOptions& options) {
  return std::make_shared<const DecodeImages>(DecodeStage{options});
}

Dataset Dataset::decode(DecodeOptions options) const {
  const bool any = options.height == 0 && options.width == 0;
  if (!any && (options.height < 1 || options.width < 1)) {
    throw ConfigError(fmt::format("decode({} x {}): no image has this size", options.height, options.width),
                      "give height and width, or neither");
  }
  return Dataset(add_stage(plan_, decode_stage(options)));
}

StageCall decode_call() {
  return stage_call<DecodeOptions,
                    [](const Dataset& data, DecodeOptions options) { return data.decode(options); }>(kDecode);
}

}  // namespace headrace
