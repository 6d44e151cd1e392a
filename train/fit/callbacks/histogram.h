// Computes histograms as TensorBoard draws them.
#pragma once

#include <tensorboard_event.pb.h>

#include <span>

namespace headrace {

// Returns the histogram of the finite values, in 30 equal buckets from the minimum to the maximum; a single one if
// all are equal, none if there are no values.
events::Histogram histogram_of(std::span<const float> values);

}  // namespace headrace
