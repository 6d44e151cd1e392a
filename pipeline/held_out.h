// The records at the end of a data set that training leaves to the validation.
#pragma once

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/dataset.h"

namespace HEADRACE_API headrace {

struct HeldOut {
  Dataset train;
  Dataset validation;  // in the records' order, one pass
};

// Splits as Keras's validation_split does: before any shuffle, the last records validate, and
// floor(records * (1 - share)) train. Operations apply to both, random ones included. Throws ConfigError if the
// share leaves either part without records, for a stream, and for a mix or shuffled parts of a combination.
HeldOut hold_out_last(const Dataset& data, double share);

}  // namespace headrace
