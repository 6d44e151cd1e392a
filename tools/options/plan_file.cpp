#include "headrace/tools/options/plan_file.h"

#include <string_view>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/tools/pipelines/pipelines.h"

namespace headrace::tools {
namespace {

// Every command reads batches.
void require_batches(const Dataset& data) {
  try {
    data.global_batch();
  } catch (const ConfigError& error) {
    throw ConfigError(error.message(), R"(add the stage {"batch": {"global_batch": 32}} to it)");
  }
}

}  // namespace

Dataset read_plan(const std::filesystem::path& file, PlanOptions options) {
  options.parts = pipeline_parts();
  const std::vector<std::byte> bytes = read_whole_file(file);
  try {
    Dataset data = Dataset::from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options);
    require_batches(data);
    return data;
  } catch (const ConfigError& error) {
    throw ConfigError(file.string() + ": " + error.message(), error.hint());
  }
}

}  // namespace headrace::tools
