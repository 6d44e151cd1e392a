// The stage that decodes every encoded field, and its step.
#pragma once

#include <string_view>

#include "headrace/pipeline/operations/sample_stage.h"
#include "headrace/pipeline/operations/step.h"

namespace headrace {

// What a step is called that decodes first.
inline constexpr std::string_view kDecodeAnd = "decode and ";

// Encoded bytes to u8 (H, W, 3).
class DecodeStep final : public Step {
 public:
  explicit DecodeStep(const DecodeOptions& options) : options_(options) {}

  const DecodeOptions& options() const noexcept { return options_; }
  bool takes_long() const noexcept override { return true; }
  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const override;

 private:
  DecodeOptions options_;
};

}  // namespace headrace
