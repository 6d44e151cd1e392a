// Reads descriptions of a net's input from records older than plans: `decode`, `operations`, `views`, `batch`.
#pragma once

#include "headrace/train/records/record_json.h"

namespace headrace {

// Returns the equivalent plan. Throws ConfigError, or what nlohmann throws, for input that was never written.
record_json::Json plan_of_earlier_input(const record_json::Json& input);

// Returns whether it was written for a program that had described no input.
bool says_nothing(const record_json::Json& input);

}  // namespace headrace
