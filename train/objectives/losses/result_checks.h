// Checks of results and labels for losses and metrics. Each throws ConfigError, naming `who` if it is given.
#pragma once

#include <string>

#include "headrace/train/losses.h"

namespace headrace {

// Require one value per class, and a softmax at the end for probabilities but none for logits.
void check_classes(const std::string& who, const ResultInfo& result);
void check_logits(const ResultInfo& result, bool from_logits);
void check_smoothing(float label_smoothing);

// Requires one int64 class number.
void check_class_number(const std::string& who, const Field& labels);
// Requires one float32 per class.
void check_class_shares(const std::string& who, const ResultInfo& result, const Field& labels);
// Requires either of the two.
void check_class_labels(const std::string& who, const ResultInfo& result, const Field& labels);
// Returns LossFunction::options_json() of the cross-entropies.
std::string cross_entropy_json(bool from_logits, float label_smoothing);
// Requires as many numbers as the result has, f32 or i64.
void check_targets(const std::string& who, const ResultInfo& result, const Field& labels);
// Require an axis to compare vectors along, and targets of the result's shape, f32.
void check_vectors(const std::string& who, const ResultInfo& result);
void check_vector_targets(const std::string& who, const ResultInfo& result, const Field& labels);

}  // namespace headrace
