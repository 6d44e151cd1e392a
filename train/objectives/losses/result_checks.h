// Checks of results and labels for losses and metrics. Each throws ConfigError, naming `who` if it is given.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "headrace/train/losses.h"
#include "headrace/train/metrics.h"

namespace headrace {

// Require one value per class, of two or more for a loss or metric of one class of several; a softmax at the end
// for probabilities, and for logits no probabilities.
void check_classes(const std::string& who, const ResultInfo& result);
void check_several_classes(const std::string& who, const ResultInfo& result);
void check_softmax(const ResultInfo& result, bool from_logits);
void check_logits(const ResultInfo& result);
// Requires a task, one of these if there are any, and returns it.
ResultTask check_task(const std::string& who, const ResultInfo& result, std::initializer_list<Task> takes = {});
void check_smoothing(float label_smoothing);

// Requires one value per class or label, and that they are such.
void check_class_scores(const std::string& who, const ResultInfo& result);

// Requires one int64 class number.
void check_class_number(const std::string& who, const Field& labels);
// Requires one float32 per class.
void check_class_shares(const std::string& who, const ResultInfo& result, const Field& labels);
// Requires either of the two or, of results that are not categorical, as check_targets().
void check_class_labels(const std::string& who, const ResultInfo& result, const Field& labels);
// Requires as many numbers as the result has, f32 or i64.
void check_targets(const std::string& who, const ResultInfo& result, const Field& labels);
// Require an axis to compare vectors along, and targets of the result's shape, f32.
void check_vectors(const std::string& who, const ResultInfo& result);
void check_vector_targets(const std::string& who, const ResultInfo& result, const Field& labels);

// Averages of the values of classes, and checks of the metrics that have them.

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
