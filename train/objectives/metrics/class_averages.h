// Averages of the values of classes, and checks of the metrics that have them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "headrace/train/metrics.h"

namespace headrace {

// Returns part / whole; 0 / 0 is 0.
inline double ratio(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

// Returns the average of values by class, or each. `micro` is the value of all counts together; `examples` are
// those of each class.
MetricValue averaged(Average average, const std::vector<double>& values, double micro,
                     const std::vector<double>& examples);

// Submits Kernels::count_scores() of probabilities: if the call's results are logits, of their softmax in its
// first scratch or, unless they are categorical, of their sigmoid.
void count_scores(const MetricCall& call, ScoreBuckets buckets);
// Returns the scratch for that.
ScratchSpec score_scratch(const TensorView& result);

}  // namespace headrace
