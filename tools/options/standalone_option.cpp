#include "headrace/tools/options/standalone_option.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "headrace/devices/base/launcher.h"

namespace headrace::tools {
namespace {

// Commands that each worker may run: nothing is read, made or written twice.
constexpr std::array kForEachWorker = {"doctor", "report", "inspect", "verify"};
// Commands that all workers run together.
constexpr std::array kForAllWorkers = {"train", "evaluate", "predict"};

void add_to_command(CLI::App& command) {
  auto standalone = std::make_shared<bool>(false);
  command.add_flag(
      "--standalone", *standalone,
      "run alone, although a launcher (torchrun, mpirun, srun ...) started this process as one of several");
  const auto among = [&](const auto& names) {
    return std::ranges::find(names, command.get_name()) != names.end();
  };
  if (among(kForEachWorker) || among(kForAllWorkers)) return;
  const CLI::Option* world = command.get_option_no_throw("--world");
  // Before the command's own callback, once its options are known to be right.
  command.parse_complete_callback([standalone, world] {
    if (*standalone || (world != nullptr && world->count() > 0)) return;
    const std::string part = world == nullptr ? "" : "give --world and --first, or ";
    refuse_to_run_beside_others(std::getenv, part + "pass --standalone where each is to run alone");
  });
}

}  // namespace

void add_standalone_option(CLI::App& program) {
  for (CLI::App* command : program.get_subcommands({})) {
    command->get_subcommands({}).empty() ? add_to_command(*command) : add_standalone_option(*command);
  }
}

}  // namespace headrace::tools
