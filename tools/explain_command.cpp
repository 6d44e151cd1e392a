// `headrace explain`: the plan as it will run, after the planner moved index stages before decoding.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "headrace/tools/commands.h"
#include "headrace/tools/pipeline_options.h"

namespace headrace::tools {

void add_explain_command(CLI::App& program) {
  auto* command = program.add_subcommand("explain", "show the plan of a pipeline as it will run");
  auto options = std::make_shared<PipelineCommandOptions>();
  options->add_to(*command);
  command->callback([options] { std::fputs(options->open().explain().c_str(), stdout); });
}

}  // namespace headrace::tools
