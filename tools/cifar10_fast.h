// The recipes `cifar10-fast` and `cifar10-fast-b`: CIFAR-10 in some 200 steps.
#pragma once

#include "headrace/tools/recipes.h"

namespace headrace::tools {

// The whole training half in batches of 2000, eight times; nothing is held out. Rates are for sums over a batch:
// another --global-batch keeps what an image moves.
Recipe cifar10_fast(const CommonOptions& options);
// A later record's: 243 batches of 1536, which is a fifteenth less work, with brightness and contrast changed.
Recipe cifar10_fast_b(const CommonOptions& options);

}  // namespace headrace::tools
