// Losses that are the mean over an example's elements.
#pragma once

#include <string>

#include "headrace/train/losses.h"

namespace headrace {

// `who` stands in messages.
Loss mean_over_elements(const std::string& who, ElementLoss loss, Reduction reduction);

}  // namespace headrace
