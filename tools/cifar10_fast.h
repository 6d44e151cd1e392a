// The recipe `cifar10-fast`: CIFAR-10 in 200 steps.
#pragma once

#include "headrace/tools/recipes.h"

namespace headrace::tools {

// The whole training half in batches of 2000, eight times; nothing is held out. Rates are for sums over a batch:
// another --global-batch keeps what an image moves.
Recipe cifar10_fast(const CommonOptions& options);

}  // namespace headrace::tools
