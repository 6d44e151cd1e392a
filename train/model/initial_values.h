// Initial values of variables.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/train/layers.h"

namespace headrace {

// Returns the values as a pure function of the arguments; `number` is the variable's position in the model.
std::vector<float> initial_values(const VariableSpec& spec, std::uint64_t seed, std::uint64_t number);

}  // namespace headrace
