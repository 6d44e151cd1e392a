#include "headrace/tools/options/common_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/tools/options/data_options.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

constexpr int kMaxPrefetch = 1024;

}  // namespace

void CommonOptions::add_reading_to(CLI::App& command, bool further_columns) {
  add_data_options(command, data, layout);
  add_column_options(command, columns, further_columns);
  command.add_option("--devices", devices, "auto, cpu:N, cuda:0,1 or cuda:0xN: one replica on each")
      ->type_name("LIST")
      ->capture_default_str();
  add_number(command, "--global-batch", global_batch, "examples in a batch over all replicas", {.min = 1});
  add_number(command, "--threads", input.threads, "compute threads of the input engine; 0: chosen while it runs",
             {.min = 0, .max = kMaxThreads})
      ->capture_default_str();
  add_number(command, "--readers", input.reader_threads,
             "threads that read records which are not in memory yet; 0: chosen while it runs",
             {.min = 0, .max = kMaxThreads})
      ->capture_default_str();
  add_number(command, "--prefetch", prefetch, "batches made ahead of the consumer",
             {.min = 0, .max = kMaxPrefetch})
      ->capture_default_str();
  add_size(
      command, "--memory-budget", input.memory_budget_bytes,
      "maximum of unpinned host memory for batches, working memory and read-ahead, for each stream of batches "
      "(train has a second one for validation); without it, no limit");
  add_size(command, "--pinned-budget", input.pinned_budget_bytes,
           "maximum of pinned host memory for batches, for each stream of batches; without it, no limit");
  add_number(command, "--cpu-budget", input.cpu_budget,
             "maximum number of compute threads that the input engine chooses; 0: one per processor",
             {.min = 0, .max = kMaxThreads})
      ->capture_default_str();
  errors.add_to(command);
  add_choice(command, "--convert", input.convert, "where uint8 images become float32 for a GPU",
             {"auto", "host", "device"});
}

void CommonOptions::add_to(CLI::App& command) {
  add_reading_to(command, /*further_columns=*/true);
  add_number(command, "--epochs", epochs, "passes over the data",
             {.min = 1, .max = std::numeric_limits<int>::max()});
  add_number(command, "--seed", seed, "the seed of all randomness")->capture_default_str();
  const std::string automatic = cache == "auto" ? "auto (in memory where images are decoded), " : "";
  command
      .add_option("--cache", cache,
                  "where samples are kept once they are decoded: " + automatic + "none, memory, or a folder")
      ->type_name("WHERE")
      ->capture_default_str();
  command.add_flag("--apply-orientation", apply_orientation,
                   "turn images upright as their EXIF data say; without it pixels come as they are stored");
  add_choice(command, "--resident", input.resident,
             "whether a GPU keeps the uint8 images of a run of several epochs", {"auto", "never", "always"});
  add_json_option(command, json);
}

void CommonOptions::add_order_to(CLI::App& command) {
  command.add_flag(
      "--any-order", any_order,
      "take batches as they become ready, so that a slow record holds up no other batch: each comes once "
      "an epoch, in an order that depends on timing");
}

DeviceGroup CommonOptions::open_devices(DeviceNeed need) const {
  try {
    DeviceGroup group = headrace::open_devices(devices, need);
    if (input.pinned_budget_bytes > 0 && group[0].info().host_memory) {
      throw ConfigError(
          "--pinned-budget changes nothing: batches for " + group[0].info().name + " lie in no pinned memory",
          "limit their memory with --memory-budget, or leave it out");
    }
    return group;
  } catch (const DeviceError& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    throw ConfigError(error.message(), error.hint());  // other devices were asked for than Headrace runs on
  }
}

LoaderOptions CommonOptions::loader() const {
  LoaderOptions options = input;
  options.seed = seed;
  options.in_order = !any_order;
  options.errors = errors.policy();
  return options;
}

void CommonOptions::silence(int rank) {
  json.clear();
  if (!errors.quarantine.empty()) errors.quarantine += fmt::format(".worker-{}", rank);
}

std::shared_ptr<SampleCache> CommonOptions::open_cache() const {
  if (cache == "none") return nullptr;
  if (cache == "auto") {
    throw ConfigError("--cache auto is for recipes alone", "give none, memory, or a folder (./auto)");
  }
  if (cache == "memory") return memory();
  opened.push_back(disk(cache));
  return opened.back();
}

void CommonOptions::refuse_unused(const Source& source) const {
  if (input.reader_threads == 0 || !source.info().resident) return;
  throw ConfigError(fmt::format("--readers {} changes nothing: {} lies in memory and is read by no thread",
                                input.reader_threads, source.info().name),
                    "leave it out");
}

void CommonOptions::warn_of_caches() const {
  for (const auto& one : opened) {
    if (const std::string trouble = one->trouble(); !trouble.empty()) {
      print(stderr, "headrace: warning: {}\n", trouble);
    }
  }
}

}  // namespace headrace::tools
