// The arena a loader makes for itself.
#pragma once

#include <memory>

#include "headrace/pipeline/compute_arena.h"

namespace headrace {

// For so many tasks at a time. ConfigError where the machine does not have what the constraints name.
std::shared_ptr<ComputeArena> make_own_arena(int max_concurrency, const ArenaConstraints& constraints);

}  // namespace headrace
