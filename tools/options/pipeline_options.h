// The options of every command that runs a named pipeline, or a plan in a file, without a trainer.
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

struct PipelineCommandOptions {
  CommonOptions common;
  std::string pipeline;
  std::filesystem::path plan = {};       // a file in place of `pipeline`; empty: none
  std::filesystem::path plan_base = {};  // where its relative paths begin
  std::string split = {};                // empty: train
  int local_replicas = 0;                // CPU replicas; 0: as --devices says
  World world = {};                      // those of this command within all replicas; by default they are all

  void add_to(CLI::App& command);
  // What --plan says itself, or leaves no room for, is refused beside it.
  static void exclude_plan(CLI::App& command, const std::vector<std::string>& options);
  // --world and --first, where a part of the replicas can be served.
  void add_world_to(CLI::App& command);

  // The command's replicas are not all there are.
  bool is_part() const noexcept { return world.total > 0; }

  // The pipeline's name, or the plan's file.
  std::string name() const { return plan.empty() ? pipeline : plan.string(); }
  // As those of CommonOptions; the plan is an input, too.
  void check_outputs(std::vector<NamedPath> more = {}) const;
  // Of a named pipeline. Opens the cache.
  PipelineOptions pipeline_options() const;
  // ConfigError where neither a pipeline nor a plan is given, for an unknown pipeline or a wrong plan; the
  // source's errors for the data.
  Dataset open() const;
  DeviceGroup devices() const;
  LoaderOptions loader() const;

 private:
  const CLI::Option* prefetch_ = nullptr;
};

}  // namespace headrace::tools
