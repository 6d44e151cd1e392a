#include "headrace/tools/pipeline_options.h"

#include <CLI/CLI.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/tools/data_options.h"
#include "headrace/tools/options.h"

namespace headrace::tools {

void PipelineCommandOptions::add_to(CLI::App& command) {
  add_choice(command, "--pipeline", pipeline, "the pipeline to run", pipeline_names())->required();
  add_choice(command, "--split", split, "the split to read; without it, train", {"train", "test"});
  add_number(command, "--replicas", replicas, "CPU replicas; short for --devices cpu:N",
             {.min = 1, .max = kMaxReplicas});
  common.add_to(command);
}

void PipelineCommandOptions::add_world_to(CLI::App& command) {
  constexpr int kMaxWorld = 1 << 20;
  CLI::Option* all = add_number(command, "--world", world.replicas,
                                "all replicas, of which this command serves some; without it, it serves all",
                                {.min = 1, .max = kMaxWorld});
  add_number(command, "--first", world.first, "the first replica of the world that this command serves; default 0",
             {.min = 0, .max = kMaxWorld})
      ->needs(all);
}

PipelineOptions PipelineCommandOptions::pipeline_options() const {
  PipelineOptions options{.data = common.data,
                          .source = {.layout = common.layout},
                          .apply_orientation = common.apply_orientation,
                          .seed = common.seed,
                          .prefetch = common.prefetch,
                          .cache = common.open_cache()};
  if (!split.empty()) options.split = parse_split(split);
  if (split.empty() && reads_data(pipeline)) options.split = Split::kTrain;
  options.global_batch = global_batch();
  return options;
}

std::int64_t PipelineCommandOptions::global_batch() const {
  return common.global_batch > 0 ? common.global_batch : PipelineOptions{}.global_batch;
}

Dataset PipelineCommandOptions::open() const {
  Dataset dataset = make_pipeline(pipeline, pipeline_options());
  report_left_out(dataset.left_out());
  return dataset;
}

DeviceGroup PipelineCommandOptions::devices() const {
  if (replicas > 0 && common.devices != "auto") {
    throw ConfigError("--replicas and --devices both say how many replicas there are", "give one of them");
  }
  CommonOptions named = common;
  if (replicas > 0) named.devices = "cpu:" + std::to_string(replicas);
  return named.open_devices(DeviceNeed::kMemory);
}

LoaderOptions PipelineCommandOptions::loader() const {
  LoaderOptions options = common.loader();
  options.epochs = common.epochs > 0 ? common.epochs : 1;
  options.world = world;
  return options;
}

}  // namespace headrace::tools
