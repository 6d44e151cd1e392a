// Something the engine decided for itself, and why.
#pragma once

#include <string>

namespace headrace {

struct Choice {
  std::string what;    // "threads"
  std::string value;   // "3"
  std::string reason;  // "2 would give 81 % of the rate"
};

}  // namespace headrace
