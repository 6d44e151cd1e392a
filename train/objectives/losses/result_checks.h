// What losses and metrics ask of results and labels. Each throws ConfigError that says who asks.
#pragma once

#include <string>

#include "headrace/train/losses.h"

namespace headrace {

// One value a class; a softmax at the end where they are probabilities, none where they are logits.
void check_classes(const std::string& who, const ResultInfo& result);
void check_logits(const ResultInfo& result, bool from_logits);
void check_smoothing(float label_smoothing);

// One int64 class number.
void check_class_number(const std::string& who, const Field& labels);
// A float32 for each class.
void check_class_shares(const std::string& who, const ResultInfo& result, const Field& labels);
// Either of them.
void check_class_labels(const std::string& who, const ResultInfo& result, const Field& labels);
// LossFunction::options_json() of cross-entropies.
std::string cross_entropy_json(bool from_logits, float label_smoothing);
// As many numbers as the result has, f32 or i64.
void check_targets(const std::string& who, const ResultInfo& result, const Field& labels);

}  // namespace headrace
