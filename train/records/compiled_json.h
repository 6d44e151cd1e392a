// What a model was compiled with, as JSON, and back.
#pragma once

#include <string>

#include "headrace/train/checkpoints.h"
#include "headrace/train/model.h"
#include "headrace/train/records/record_json.h"

namespace headrace {

record_json::Json to_record_json(const CompileOptions& options);
// ConfigError for what cannot be, and for a loss, metric or update rule that is neither this library's nor among
// `own`: it says what to hand over.
CompileOptions compile_options_from(const record_json::Json& json, const OwnParts& own);

}  // namespace headrace
