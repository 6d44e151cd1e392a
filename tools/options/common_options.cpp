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
constexpr Range<double> kThreads{.min = 0, .max = kMaxThreads};

}  // namespace

void CommonOptions::add_reading_to(CLI::App& command, bool further_columns) {
  add_data_options(command, data, layout);
  add_column_options(command, columns, further_columns);
  command.add_option("--devices", devices, "auto, cpu:N, cuda:0,1 or cuda:0xN: one replica on each")
      ->type_name("LIST")
      ->capture_default_str();
  add_number(command, "--global-batch", global_batch, help_of<BatchOptions>("global_batch"), {.min = 1});
  add_field(command, input, {.field = "threads", .range = kThreads});
  add_field(command, input, {.field = "reader_threads", .name = "--readers", .range = kThreads});
  add_number(command, "--prefetch", prefetch, "batches made ahead of the consumer",
             {.min = 0, .max = kMaxPrefetch})
      ->capture_default_str();
  add_field(command, input, {.field = "memory_budget_bytes"});
  add_field(command, input, {.field = "pinned_budget_bytes"});
  add_field(command, input, {.field = "cpu_budget", .range = kThreads});
  errors.add_to(command);
  add_field(command, input, {.field = "convert"});
}

void CommonOptions::add_to(CLI::App& command) {
  add_reading_to(command, /*further_columns=*/true);
  add_number(command, "--epochs", epochs, help_of<LoaderOptions>("epochs"),
             {.min = 1, .max = std::numeric_limits<int>::max()});
  add_field(command, input, {.field = "seed"});
  const std::string automatic = cache == "auto" ? "auto (in memory where images are decoded), " : "";
  command
      .add_option("--cache", cache,
                  "where samples are kept once they are decoded: " + automatic + "none, memory, or a folder")
      ->type_name("WHERE")
      ->capture_default_str();
  command.add_flag("--apply-orientation", apply_orientation, help_of<DecodeOptions>("apply_orientation"));
  add_field(command, input, {.field = "resident"});
  add_json_option(command, json);
}

void CommonOptions::add_order_to(CLI::App& command) {
  add_field(command, input, {.field = "in_order", .name = "--any-order"});
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
