// Converts the options that a model was compiled with to and from JSON.
#pragma once

#include <string>

#include "headrace/train/checkpoints.h"
#include "headrace/train/model.h"
#include "headrace/train/records/record_json.h"

namespace headrace {

record_json::Json to_record_json(const CompileOptions& options);
// Throws ConfigError for invalid options, and for a loss, metric or update rule that is neither this library's nor
// in `own`: the message says what to pass.
CompileOptions compile_options_from(const record_json::Json& json, const CustomParts& own);

}  // namespace headrace
