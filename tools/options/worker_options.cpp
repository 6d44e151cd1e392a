#include "headrace/tools/options/worker_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

#include "headrace/tools/options/options.h"

namespace headrace::tools {
namespace {

// Each worker's own: its part of the machine, its copy of the data (which are compared), what only the chief
// writes.
constexpr std::array<std::string_view, 26> kOwn{"--help",
                                                "--standalone",
                                                "--data",
                                                "--devices",
                                                "--threads",
                                                "--readers",
                                                "--prefetch",
                                                "--memory-budget",
                                                "--pinned-budget",
                                                "--cpu-budget",
                                                "--cache",
                                                "--resident",
                                                "--convert",
                                                "--quarantine",
                                                "--json",
                                                "--verbose",
                                                "--run-dir",
                                                "--csv",
                                                "--tensorboard",
                                                "--histograms",
                                                "--out",
                                                "--report",
                                                "--checkpoint-keep",
                                                "--worker-listen",
                                                "--worker-start-timeout",
                                                "--worker-call-timeout"};
// Paths that only the chief uses; but whether there is one decides what all do.
constexpr std::array<std::string_view, 4> kChiefs{"--checkpoint-dir", "--record", "--trace", "--plan"};

}  // namespace

void WorkerFlags::add_to(CLI::App& command) {
  add_number(command, "--worker-start-timeout", limits.start_timeout_seconds,
             "seconds for all workers to start, if a launcher started several", {.min = 1, .max = 1e6})
      ->capture_default_str();
  add_number(command, "--worker-call-timeout", limits.call_timeout_seconds,
             "seconds that a worker waits for the others to reach the same step", {.min = 1, .max = 1e6})
      ->capture_default_str();
  command
      .add_option("--worker-listen", limits.listen,
                  "the address at which worker 0 listens for the others, if not at all; see HEADRACE_WORLD_SECRET")
      ->type_name("ADDRESS");
}

void WorkerFlags::read(const CLI::App& command) {
  standalone = command.get_option("--standalone")->count() > 0;
  name = command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    const std::string word = option->get_name();
    if (std::ranges::find(kOwn, word) != kOwn.end()) continue;
    const bool chiefs = std::ranges::find(kChiefs, word) != kChiefs.end();
    std::string value = option->get_default_str();
    if (option->count() > 0) {
      value = chiefs || option->get_items_expected_max() == 0
                  ? "given"
                  : fmt::format("{}", fmt::join(option->results(), " "));
    }
    same.emplace_back(word, value.empty() ? "not given" : value);
  }
}

std::shared_ptr<Workers> WorkerFlags::open() const {
  if (standalone) return nullptr;
  std::shared_ptr<Workers> workers = open_world(limits);
  if (!workers) return nullptr;
  require_same(*workers, "headrace " + name, same);
  share_cores(*workers);
  return workers;
}

}  // namespace headrace::tools
