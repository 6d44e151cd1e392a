// A plan in a file, named by --plan.
#pragma once

#include <filesystem>

#include "headrace/pipeline/dataset.h"

namespace headrace::tools {

// Reads a plan, which may name the code of the command's pipelines. Errors name the file. Throws ConfigError if it
// is not a plan.
Dataset read_plan(const std::filesystem::path& file, PlanOptions options);

}  // namespace headrace::tools
