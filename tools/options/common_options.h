// The options that several subcommands share, and their meaning.
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
  std::int64_t global_batch = 0;  // 0: chosen by the recipe or pipeline
  std::uint64_t epochs = 0;       // 0: chosen by the recipe, 1 for a pipeline
  int prefetch = 2;
  LoaderOptions input = {};  // except options that have their own member here
  std::string cache = "none";
  bool apply_orientation = false;
  ErrorOptions errors = {};
  std::string json = {};  // a file, "-" for standard output, empty for none

  // Adds --data and the options of reading it in one pass: devices, batch, threads, budgets, bad records.
  // `further_columns`: with --columns.
  void add_reading_to(CLI::App& command, bool further_columns);
  // Adds these, the options of runs that make their own plan of several epochs, and --json.
  void add_to(CLI::App& command);
  // Adds --any-order, for commands to whose result the order of batches does not matter.
  void add_order_to(CLI::App& command);

  // Opens the devices of --devices. Throws ConfigError if they do not exist or cannot do what is needed,
  // or if a limit is given that limits nothing.
  DeviceGroup open_devices(DeviceNeed need) const;
  // Returns the options for one pass; the error policy shares this object's tally.
  LoaderOptions loader() const;
  // Leaves out what only the chief of several workers writes. A list of bad records gets the worker's number in
  // its name.
  void silence(int rank);
  // Returns null for "none"; anything but none, auto and memory is a folder. Throws ConfigError for "auto".
  std::shared_ptr<SampleCache> open_cache() const;
  // Throws ConfigError naming an option that has no effect on records of this source.
  void refuse_unused(const Source& source) const;
  // Prints on standard error why a cache opened here stores nothing more.
  void warn_of_caches() const;

  mutable std::vector<std::shared_ptr<SampleCache>> opened = {};  // by open_cache()
};

}  // namespace headrace::tools
