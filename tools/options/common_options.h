// The options that several subcommands share, and what they mean.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "headrace/cache/sample_cache.h"
#include "headrace/devices/registry.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tools/options/error_options.h"

namespace CLI {
class App;
}

namespace headrace::tools {

struct CommonOptions {
  std::filesystem::path data = {};
  LayoutOptions layout = {};
  ColumnOptions columns = {};
  std::string devices = "auto";
  std::int64_t global_batch = 0;  // 0: as the recipe or pipeline says
  std::uint64_t epochs = 0;       // 0: as the recipe says, 1 for a pipeline
  std::uint64_t seed = 0;
  int prefetch = 2;
  LoaderOptions input = {};  // but for what has a member of its own here
  std::string cache = "none";
  bool apply_orientation = false;
  ErrorOptions errors = {};
  std::string json = {};  // a file, "-" for standard output, empty for none

  // --data, and how it is read in one pass: devices, batch, threads, budgets, bad records. `further_columns`: with
  // --columns.
  void add_reading_to(CLI::App& command, bool further_columns);
  // Those, and what a run has besides that makes a plan of its own, of several epochs; and --json.
  void add_to(CLI::App& command, bool further_columns = true);

  // Those of --devices. ConfigError where there are none such, or where they cannot do what they are needed for.
  DeviceGroup open_devices(DeviceNeed need) const;
  // For one pass; the error policy shares the options' tally.
  LoaderOptions loader() const;
  // Null for "none"; anything but none, auto and memory is a folder. ConfigError for "auto".
  std::shared_ptr<SampleCache> open_cache() const;
  // Says on standard error which options change nothing for records of this source.
  void warn_of_unused(const Source& source) const;
  // Says on standard error why a cache that was opened here stores nothing more.
  void warn_of_caches() const;

  mutable std::vector<std::shared_ptr<SampleCache>> opened = {};  // by open_cache()
};

}  // namespace headrace::tools
