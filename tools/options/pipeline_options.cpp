#include "headrace/tools/options/pipeline_options.h"

#include <CLI/CLI.hpp>

#include <string_view>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/tools/options/common_options.h"
#include "headrace/tools/options/options.h"
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

void PipelineCommandOptions::add_to(CLI::App& command) {
  CLI::Option* named = add_choice(command, "--pipeline", pipeline, "the pipeline to run", pipeline_names());
  CLI::Option* file =
      command.add_option("--plan", plan,
                         "run the plan in this JSON file, which headrace explain --write-plan or a "
                         "program wrote");
  file->type_name("FILE")->excludes(named);
  command.add_option("--plan-base", plan_base, "the folder where relative paths in the plan begin")
      ->type_name("FOLDER")
      ->needs(file);
  add_choice(command, "--split", split, "the split to read; without it, train", {"train", "test"});
  add_number(command, "--replicas", local_replicas, "CPU replicas; short for --devices cpu:N",
             {.min = 1, .max = kMaxReplicas});
  CLI::Option* stream = add_field(command, source, {.field = "indexed", .name = "--no-index"});
  for (const char* field : {"window", "shards"}) add_field(command, shards, {field})->needs(stream);
  common.add_to(command);
  prefetch_ = command.get_option("--prefetch");
  exclude_plan(command, {"--data", "--classes-at", "--train-folder", "--test-folder", "--image-column",
                         "--label-column", "--label-type", "--columns", "--split", "--no-index", "--window",
                         "--shards", "--global-batch", "--cache", "--apply-orientation"});
}

void PipelineCommandOptions::exclude_plan(CLI::App& command, const std::vector<std::string>& options) {
  for (const std::string& option : options) command.get_option(option)->excludes(command.get_option("--plan"));
}

void PipelineCommandOptions::check_outputs(std::vector<NamedPath> more) const {
  more.push_back({.option = "--json", .path = common.json});
  tools::check_outputs(more, {{.option = "--plan", .path = plan}});
  more.pop_back();
  tools::check_outputs(common, std::move(more));
}

void PipelineCommandOptions::add_world_to(CLI::App& command) {
  constexpr Range<double> kWorld{.min = 0, .max = 1 << 20};
  CLI::Option* all =
      add_field(command, common.input, {.field = "world_replicas", .name = "--world", .range = kWorld});
  add_field(command, common.input, {.field = "world_first", .name = "--first", .range = kWorld})->needs(all);
}

PipelineOptions PipelineCommandOptions::pipeline_options() const {
  PipelineOptions options{
      .data = common.data,
      .source = {.layout = common.layout, .columns = common.columns, .indexed = source.indexed},
      .apply_orientation = common.apply_orientation,
      .seed = common.input.seed,
      .shards = shards,
      .prefetch = common.prefetch,
      .cache = common.open_cache()};
  if (!split.empty()) options.split = parse_split(split);
  if (split.empty() && reads_data(pipeline)) options.split = Split::kTrain;
  if (common.global_batch > 0) options.global_batch = common.global_batch;
  return options;
}

Dataset PipelineCommandOptions::open() const {
  if (pipeline.empty() && plan.empty()) {
    throw ConfigError("neither --pipeline nor --plan is given", "name a pipeline, or the file of a plan");
  }
  Dataset dataset =
      plan.empty() ? make_pipeline(pipeline, pipeline_options()) : read_plan(plan, {.base = plan_base});
  if (!plan.empty() || !dataset.source()->format().empty()) report_reading(dataset.reading(), plan.empty());
  common.refuse_unused(*dataset.source());
  return dataset;
}

DeviceGroup PipelineCommandOptions::devices() const {
  if (local_replicas > 0 && common.devices != "auto") {
    throw ConfigError("--replicas and --devices both say how many replicas there are", "give one of them");
  }
  CommonOptions named = common;
  if (local_replicas > 0) named.devices = "cpu:" + std::to_string(local_replicas);
  return named.open_devices(DeviceNeed::kMemory);
}

LoaderOptions PipelineCommandOptions::loader() const {
  LoaderOptions options = common.loader();
  options.epochs = common.epochs > 0 ? common.epochs : 1;
  if (!plan.empty() && prefetch_->count() > 0) options.prefetch = common.prefetch;
  return options;
}

}  // namespace headrace::tools
