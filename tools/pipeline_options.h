// The options of every command that runs a named pipeline without a trainer.
#pragma once

#include <string>

#include "headrace/devices/device_group.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/common_options.h"
#include "headrace/tools/pipelines/pipelines.h"

namespace headrace::tools {

struct PipelineCommandOptions {
  CommonOptions common;
  std::string pipeline;
  std::string split = {};  // empty: train
  int replicas = 0;        // CPU replicas; 0: as --devices says
  World world = {};        // those of this command within all replicas; by default they are all

  void add_to(CLI::App& command);
  // --world and --first, where a part of the replicas can be served.
  void add_world_to(CLI::App& command);

  // The command's replicas are not all there are.
  bool is_part() const noexcept { return world.replicas > 0; }

  // Opens the cache.
  PipelineOptions pipeline_options() const;
  std::int64_t global_batch() const;
  // ConfigError for an unknown pipeline, the source's errors for the data.
  Dataset open() const;
  DeviceGroup devices() const;
  LoaderOptions loader() const;
};

}  // namespace headrace::tools
