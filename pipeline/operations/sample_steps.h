// The steps that are not a pass over pixels: decoding, resampling, the user's own function.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/operations/encoded_image.h"
#include "headrace/pipeline/operations/step.h"

namespace headrace {

// Encoded bytes to u8 (H, W, 3).
struct DecodeStep {
  DecodeOptions options = {};

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const;
};

// From an encoded image it decodes the window only, from pixels it reads the window only.
struct RandomResizedCropStep {
  RandomResizedCrop options;
  std::uint16_t number = 0;
  std::optional<EncodedImages> encoded = {};  // else it is given pixels

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const;
};

struct ResizeStep {
  Resize options;

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const;
};

// Makes only what the crop leaves, of the pixels that takes; from an encoded image it decodes no others.
struct ResizeAndCropStep {
  Resize resize;
  CenterCrop crop;
  std::optional<EncodedImages> encoded = {};  // else it is given pixels

  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const;
};

struct UserStep {
  UserMap map;
  std::uint16_t number = 0;
  bool cached = false;  // stands before a cache: must not draw random numbers

  // The function's result goes through scratch memory, so that a call that is given up never writes to a batch.
  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const;
};

}  // namespace headrace
