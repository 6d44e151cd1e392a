// A class number to a vector with one entry a class.
#pragma once

#include "headrace/pipeline/operation.h"
#include "headrace/pipeline/operations/step.h"

namespace headrace {

struct OneHotStep {
  OneHot options;

  // Error(kDataCorrupt) where the number is no class.
  FieldView run(const FieldView& in, const StepContext& context, StepOutput& output) const;
};

}  // namespace headrace
