// The records that a fit leaves to its validation.
#pragma once

#include <optional>

#include "headrace/pipeline/held_out.h"
#include "headrace/train/fit_options.h"

namespace headrace {

// Returns the two parts of the data if the options ask for a validation split. Throws ConfigError if they have a
// validation, too, or if the data cannot be split.
std::optional<HeldOut> split_of_fit(const Dataset& data, const FitOptions& options);

}  // namespace headrace
