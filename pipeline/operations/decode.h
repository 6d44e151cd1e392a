// The stage that decodes every encoded field, and its step.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/pipeline/operations/machinery/sample_stage.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// Prefix for the names of steps that decode first.
inline constexpr std::string_view kDecodeAnd = "decode and ";

// Returns whether the field is an encoded mask: an image of one channel.
bool is_mask(const Field& field) noexcept;

// Decodes encoded masks to their numbers, u8 (H, W, 1).
class DecodeMaskStep final : public Step {
 public:
  explicit DecodeMaskStep(DecodeStage stage) : stage_(std::move(stage)) {}

  bool takes_long() const noexcept override { return true; }
  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override;

 private:
  DecodeStage stage_;
};

// Decodes encoded bytes to u8 (H, W, 3).
class DecodeStep final : public Step {
 public:
  explicit DecodeStep(DecodeStage stage) : stage_(std::move(stage)) {}

  const DecodeStage& stage() const noexcept { return stage_; }
  bool takes_long() const noexcept override { return true; }
  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override;

 private:
  DecodeStage stage_;
};

// Adds a step that can decode by itself; if the last step decodes, it takes that step's place, too.
template <typename DecodingStep>
void add_decoding(StepList& steps, std::unique_ptr<DecodingStep> step, std::string name) {
  if (const auto* decode = steps.last<DecodeStep>()) {
    step->decode_by_itself(decode->stage());
    name.insert(0, kDecodeAnd);
    steps.remove_last();
  }
  steps.add(std::move(step), std::move(name));
}

}  // namespace headrace
