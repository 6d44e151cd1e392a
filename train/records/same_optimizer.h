// Whether the optimizer of a file can go on as that of a model.
#pragma once

#include "headrace/train/optimizers.h"
#include "headrace/train/records/tensor_file.h"

namespace headrace {

// ConfigError naming what of both does not fit: another rule or other options of it, for all variables or for
// those of a group; another number of groups, or other variables in one; lookahead or an average that only one of
// them has. Schedules, limits of gradients and what else depends on the length of a run may differ.
void check_same_optimizer(const TensorFile& file, const Optimizer& optimizer);

}  // namespace headrace
