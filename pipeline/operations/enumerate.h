// The operation by which enumerate() adds its numbers to a sample.
#pragma once

#include <cstddef>
#include <string>

#include "headrace/pipeline/operation.h"

namespace headrace {

struct Enumeration {
  std::string field = {};
  std::size_t place = 0;     // among the numbers that StepContext has
  std::string counted = {};  // the index stages before it: what its numbers depend on
  bool may_change = false;   // whether a record may have another number in another pass
};

// Reads StepContext::numbers.
OperationPtr define(Enumeration enumeration);

}  // namespace headrace
