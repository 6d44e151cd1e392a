// How values are spread, as TensorBoard draws it.
#pragma once

#include <tensorboard_event.pb.h>

#include <span>

namespace headrace {

// Of the finite values, in 30 buckets of one width from the smallest to the largest; a single one where all are
// equal, none where there are no values.
events::Histogram histogram_of(std::span<const float> values);

}  // namespace headrace
