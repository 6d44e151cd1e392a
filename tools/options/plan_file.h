// A plan in a file, as --plan names it.
#pragma once

#include <filesystem>

#include "headrace/pipeline/dataset.h"

namespace headrace::tools {

// The plan of the file, which may name the code of the command's pipelines. Errors name the file; ConfigError
// where it is no plan.
Dataset read_plan(const std::filesystem::path& file, PlanOptions options);

}  // namespace headrace::tools
