// The options that several commands share, and their meaning.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "headrace/cache/sample_cache.h"
#include "headrace/devices/registry.h"
#include "headrace/devices/workers.h"
#include "headrace/pipeline/bad_record.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/sources.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace headrace::tools {

// The options for bad records, and the final line of a command about them.

// --on-error, --max-bad-share and --quarantine.
struct ErrorOptions : ErrorPolicy {
  ErrorOptions() { tally = std::make_shared<BadRecordTally>(); }  // shared by copies of the options

  // `substitutes`: whether another record may replace a bad one.
  void add_to(CLI::App& command, bool substitutes = true);

  // Returns the policy. All policies share one tally. Throws ConfigError if --max-bad-share is given to a run that
  // skips nothing.
  ErrorPolicy policy() const;
  // Returns the number of bad records so far, each counted once.
  std::uint64_t bad_records() const { return tally->count().bad; }
  // Returns how many records were skipped or replaced, the first of them, and where all are listed; empty if none.
  std::string text() const;
  // Prints that line on standard error, at the end of a command; nothing if there were none.
  void report() const;

 private:
  const CLI::Option* share_ = nullptr;  // --max-bad-share
};

// Returns the line without its end. REQUIRES: `count` has at least one.
std::string describe(const BadRecordTally::Count& count, OnError on_error,
                     const std::filesystem::path& quarantine);

// The options that select and describe a command's data.

// Adds --data, which it returns, and the options of image folders.
CLI::Option* add_data_options(CLI::App& command, std::filesystem::path& data, LayoutOptions& layout);

// Adds --image-column, --label-column and --label-type; with `further` also --columns.
void add_column_options(CLI::App& command, ColumnOptions& columns, bool further);

// Prints on standard error how the data were read, Dataset::reading(), and returns the line; `columns_option`: the
// command has --columns.
std::string report_reading(std::string reading, bool columns_option);

// The options that several subcommands share, and their meaning.

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

// The options of a command that several workers run together.

// --worker-start-timeout, --worker-call-timeout and --worker-listen.
struct WorkerFlags {
  WorkerOptions limits = {};
  NamedValues same = {};    // by option, as typed
  std::string name = {};    // the command's
  bool standalone = false;  // see command_line.h

  void add_to(CLI::App& command);
  // Takes over --standalone and what must be the same on all workers: every option that was typed, but for those
  // that say where a worker finds and puts its files, which only the chief reads, and how each uses its machine.
  void read(const CLI::App& command);
  // Joins the other workers, compares the options and takes this one's share of its host's cores; returns null for
  // a process that runs alone. REQUIRES: no threads were started that compute.
  std::shared_ptr<Workers> open() const;
};

}  // namespace headrace::tools
