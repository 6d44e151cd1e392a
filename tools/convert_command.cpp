// `headrace convert`: packs a data set into one file that is read by position.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/convert.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/data_options.h"
#include "headrace/tools/error_options.h"
#include "headrace/tools/json_lines.h"
#include "headrace/tools/number_checks.h"
#include "headrace/tools/output_check.h"

namespace headrace::tools {
namespace {

constexpr double kSecondsBetweenReports = 0.5;

struct ConvertCommandOptions {
  std::filesystem::path data;
  std::filesystem::path to;
  std::string split;
  ConvertOptions convert;
  ErrorOptions errors;
  std::string json;
};

// One line on standard error, written over itself; only on a terminal.
class ProgressLine {
 public:
  void report(std::uint64_t done, std::uint64_t records) {
    if (!terminal_ || (done < records && watch_.seconds() < kSecondsBetweenReports)) return;
    watch_.restart();
    std::fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " records%s", done, records, done == records ? "\n" : "");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  Stopwatch watch_;
};

void convert(ConvertCommandOptions options) {
  check_outputs({{.option = "--to", .path = options.to}, {.option = "--json", .path = options.json}},
                {{.option = "--data", .path = options.data}}, options.errors);
  JsonLines json(options.json);
  if (!options.split.empty()) options.convert.split = parse_split(options.split);
  ProgressLine line;
  options.convert.progress = [&](std::uint64_t done, std::uint64_t records) { line.report(done, records); };
  options.convert.errors = options.errors.policy();
  const Stopwatch watch;
  const ConvertResult result = convert_dataset(options.data, options.to, options.convert);
  const double seconds = watch.seconds();
  report_left_out(result.left_out);
  if (result.absent) {
    std::fprintf(json.people(), "there is no %s split here: the file holds the other one alone\n",
                 *result.absent == Split::kTrain ? "train" : "test");
  }
  std::fprintf(json.people(), "%" PRIu64 " records, %" PRIu64 " bytes in %.2f s: %s\n", result.records,
               result.bytes, seconds, options.to.string().c_str());
  json.write({{"records", result.records},
              {"bytes", result.bytes},
              {"seconds", seconds},
              {"bad_records", result.bad_records}});
  json.finish();
  options.errors.report();
}

}  // namespace

void add_convert_command(CLI::App& program) {
  auto* command =
      program.add_subcommand("convert", "pack a data set into one file, read by position and checksummed");
  auto options = std::make_shared<ConvertCommandOptions>();
  add_data_options(*command, options->data, options->convert.source.layout)->required();
  command->add_option("--to", options->to, "the file to write; it appears whole or not at all")->required();
  command->add_option("--split", options->split, "train or test alone; without it both");
  command
      ->add_option("--max-side", options->convert.max_side,
                   "reduce images to this longest side; those that fit stay byte for byte")
      ->check(CLI::Range(1, 65500));
  command
      ->add_option("--quality", options->convert.quality,
                   "encode every image anew at this JPEG quality; reduced ones are at 90 without it")
      ->check(CLI::Range(1, 100));
  command->add_flag("--apply-orientation", options->convert.apply_orientation,
                    "turn images the way up that their EXIF data say, and encode those anew");
  options->errors.add_to(*command);
  command->add_option("--threads", options->convert.threads, "that decode and encode; 0: one a processor")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--json", options->json, "results as JSON lines into this file, - for standard output");
  check_numbers(*command);
  command->callback([options] { convert(*options); });
}

}  // namespace headrace::tools
