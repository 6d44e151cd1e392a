#include "headrace/tools/options/common_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

std::string treatment_of(std::uint64_t bad, OnError on_error) {
  const bool one = bad == 1;
  if (on_error == OnError::kSkip) return one ? "was bad and was skipped" : "were bad and were skipped";
  return one ? "was bad and was replaced by another" : "were bad and were replaced by others";
}

std::string location_of(const BadRecord& bad) {
  std::string text = fmt::format("{} record {}", bad.source, with_commas(bad.record));
  if (bad.offset != DataLocation::kUnknown) text += fmt::format(", byte offset {}", bad.offset);
  return text;
}

}  // namespace

void ErrorOptions::add_to(CLI::App& command, bool substitutes) {
  add_field(command, *this, {.field = "on_error", .choices = substitutes ? 3U : 2U});
  share_ = add_field(command, *this, {.field = "max_bad_share", .range = {.min = 0, .max = 1}});
  add_field(command, *this, {.field = "quarantine"});
}

ErrorPolicy ErrorOptions::policy() const {
  if (on_error == OnError::kFail && share_ != nullptr && share_->count() > 0) {
    throw ConfigError("--max-bad-share changes nothing: with --on-error fail the first bad record ends the run",
                      "give --on-error skip, too, or leave it out");
  }
  return *this;
}

std::string ErrorOptions::text() const {
  const BadRecordTally::Count count = tally->count();
  return count.bad == 0 ? std::string() : describe(count, on_error, quarantine);
}

void ErrorOptions::report() const {
  if (const std::string line = text(); !line.empty()) print(stderr, "headrace: {}\n", line);
}

std::string describe(const BadRecordTally::Count& count, OnError on_error,
                     const std::filesystem::path& quarantine) {
  return fmt::format(
      "{} of {} {}; first: {}: {} ({})", with_commas(count.bad), count_of(count.records, "record"),
      treatment_of(count.bad, on_error), location_of(*count.first), headrace::describe(*count.first),
      quarantine.empty() ? "--quarantine FILE lists them all" : "all are listed in " + quarantine.string());
}

namespace {

// Replaces "-" with the path of standard input. Returns an empty complaint, as a validator does.
std::string standard_input_for_dash(std::string& path) {
  if (path != "-") return {};
  if (::isatty(STDIN_FILENO) == 1) {
    throw ConfigError("--data - is standard input, and that is a terminal",
                      "pipe data into it, as in: cat train.tar | headrace digest --data - ...");
  }
  path = "/dev/stdin";
  return {};
}

// Sets the process's fetch cache when they are parsed: the budget first, which is declared first.
void add_fetch_cache_options(CLI::App& command) {
  const auto budget = std::make_shared<std::uint64_t>(0);
  CLI::Option* size = add_size(command, "--fetch-budget", *budget, "the maximum of the fetch cache's files");
  const auto set = [budget](const std::string& folder) {
    remote::set_fetch_cache({.folder = folder, .budget_bytes = *budget});
  };
  CLI::Option* folder = command.add_option_function<std::string>(
      "--fetch-cache", set,
      "keep what is fetched of URLs in this folder of a local disk, for all processes and later runs");
  size->needs(folder->type_name("FOLDER")->needs(size));
}

}  // namespace

CLI::Option* add_data_options(CLI::App& command, std::filesystem::path& data, LayoutOptions& layout) {
  CLI::Option* option =
      command
          .add_option(
              "--data", data,
              "a folder, archive, file, pipe or URL (https://HOST/FILE, https://HOST/train-{000..099}.tar, "
              "s3://BUCKET/PREFIX/, gs://, az://, hf://datasets/OWNER/NAME/), - for standard input; its format is "
              "recognised by content")
          ->type_name("PATH")
          ->transform(CLI::Validator([](std::string& path) { return standard_input_for_dash(path); }, ""));
  for (const char* field : {"classes_at", "train_folder", "test_folder"}) add_field(command, layout, {field});
  add_fetch_cache_options(command);
  return option;
}

void add_column_options(CLI::App& command, ColumnOptions& columns, bool further) {
  for (const char* field : {"image_column", "label_column", "label_type"}) add_field(command, columns, {field});
  if (further) add_field(command, columns, {"columns"});
}

std::string report_reading(std::string reading, bool columns_option) {
  if (columns_option && reading.find("left out of each record") != std::string::npos)
    reading += "; --columns takes them along";
  print(stderr, "headrace: reading {}\n", reading);
  return reading;
}

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
  add_field(command, input, {.field = "decode"});
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

namespace {

// Each worker's own: its part of the machine, its copy of the data (which are compared), what only the chief
// writes.
constexpr std::array<std::string_view, 28> kOwn{"--help",
                                                "--standalone",
                                                "--data",
                                                "--devices",
                                                "--threads",
                                                "--readers",
                                                "--prefetch",
                                                "--memory-budget",
                                                "--pinned-budget",
                                                "--fetch-cache",
                                                "--fetch-budget",
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
             help_of<WorkerOptions>("start_timeout_seconds"), {.min = 1, .max = 1e6})
      ->capture_default_str();
  add_number(command, "--worker-call-timeout", limits.call_timeout_seconds,
             help_of<WorkerOptions>("call_timeout_seconds"), {.min = 1, .max = 1e6})
      ->capture_default_str();
  command.add_option("--worker-listen", limits.listen, help_of<WorkerOptions>("listen"))->type_name("ADDRESS");
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
