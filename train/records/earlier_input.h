// What records said of their net's input before they held a plan: `decode`, `operations`, `views`, `batch`.
#pragma once

#include "headrace/train/records/record_json.h"

namespace headrace {

// The same as a plan's JSON. ConfigError, or what nlohmann throws, for what was never written.
record_json::Json plan_of_earlier_input(const record_json::Json& input);

// Whether it is what was written where the program had said nothing.
bool says_nothing(const record_json::Json& input);

}  // namespace headrace
