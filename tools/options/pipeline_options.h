// A plan in a file, named by --plan.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/options/common_options.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/pipelines/pipelines.h"

namespace CLI {
class Option;
}

namespace headrace::tools {

// Reads a plan, which may name the code of the command's pipelines. Errors name the file. Throws ConfigError if it
// is not a plan.
Dataset read_plan(const std::filesystem::path& file, PlanOptions options);

// The options of every command that runs a named pipeline, or a plan in a file, without a trainer.

struct PipelineCommandOptions {
  CommonOptions common;
  std::string pipeline;
  std::filesystem::path plan = {};       // a file in place of `pipeline`; empty: none
  std::filesystem::path plan_base = {};  // where its relative paths begin
  std::string split = {};                // empty: train
  SourceOptions source = {};             // whether it is indexed; `common` has its other options
  ShuffleShardsOptions shards = {};      // if it is not
  int local_replicas = 0;                // CPU replicas; 0: see --devices

  void add_to(CLI::App& command);
  // Refuses options that --plan includes or excludes.
  static void exclude_plan(CLI::App& command, const std::vector<std::string>& options);
  // Adds --world and --first, for commands that can serve a part of the replicas.
  void add_world_to(CLI::App& command);

  // Returns whether there are replicas besides the command's.
  bool is_part() const noexcept { return common.input.world.total > 0; }

  // Returns the pipeline's name, or the plan's file.
  std::string name() const { return plan.empty() ? pipeline : plan.string(); }
  // Checks outputs as for CommonOptions; the plan is also an input.
  void check_outputs(std::vector<NamedPath> more = {}) const;
  // Returns the options of a named pipeline. Opens the cache.
  PipelineOptions pipeline_options() const;
  // Opens the data. Throws ConfigError if neither a pipeline nor a plan is given, for an unknown pipeline or a
  // wrong plan; throws as the source does for the data.
  Dataset open() const;
  DeviceGroup devices() const;
  LoaderOptions loader() const;

 private:
  const CLI::Option* prefetch_ = nullptr;
};

}  // namespace headrace::tools
