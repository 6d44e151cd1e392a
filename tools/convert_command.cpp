// `headrace convert`: packs a data set into one file, or several, that are read by position.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/convert.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/options/common_options.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

struct ConvertCommandOptions {
  std::filesystem::path data;
  std::filesystem::path to;
  std::string format, split;
  ConvertOptions convert;
  ErrorOptions errors;
  std::string json;
};

// "photos" for photos.tar.zst and for the folder photos/.
std::string name_without_suffix(const std::filesystem::path& data) {
  std::error_code ignored;
  const std::filesystem::path name = std::filesystem::weakly_canonical(data, ignored).filename();
  if (path_kind(data) == PathKind::kDirectory) return name.string();
  return name.stem().extension() == ".tar" ? name.stem().stem().string() : name.stem().string();
}

// In a folder the file is called after the data.
std::filesystem::path file_to_write(const ConvertCommandOptions& options) {
  if (options.convert.shard_bytes > 0 || path_kind(options.to) != PathKind::kDirectory) return options.to;
  return options.to / (name_without_suffix(options.data) + (options.format == "webdataset" ? ".tar" : ".records"));
}

void convert(ConvertCommandOptions options) {
  options.to = file_to_write(options);
  std::vector<NamedPath> outputs;
  if (options.convert.shard_bytes == 0) outputs.push_back({.option = "--to", .path = options.to});
  outputs.push_back({.option = "--json", .path = options.json});
  check_outputs(outputs, {{.option = "--data", .path = options.data}}, options.errors);
  JsonLines json(options.json);
  if (!options.split.empty()) options.convert.split = parse_split(options.split);
  if (options.format == "webdataset") options.convert.format = ConvertFormat::kWebDataset;
  ProgressLine line;
  options.convert.progress = [&](std::uint64_t done, std::uint64_t records) {
    line.show(records == kUnknownRecords ? count_of(done, "record")
                                         : fmt::format("{} of {} records", done, records));
  };
  options.convert.errors = options.errors.policy();
  const Stopwatch watch;
  const ConvertResult result = convert_dataset(options.data, options.to, options.convert);
  const double seconds = watch.seconds();
  line.clear();
  report_reading(result.reading, true);
  if (result.absent) {
    print(json.text_output(), "there is no {} split here: the file holds the other one alone\n",
          *result.absent == Split::kTrain ? "train" : "test");
  }
  const std::string shards = result.shards == 0 ? "" : fmt::format(" in {}", count_of(result.shards, "file"));
  const std::string kept =
      result.kept_shards == 0 ? "" : fmt::format(", {} of them already there", result.kept_shards);
  print(json.text_output(), "{}, {} bytes{}{} in {:.2f} s: {}\n", count_of(result.records, "record"), result.bytes,
        shards, kept, seconds, options.to);
  json.write({{"file", options.to.string()},
              {"records", result.records},
              {"bytes", result.bytes},
              {"shards", result.shards},
              {"kept_shards", result.kept_shards},
              {"seconds", seconds},
              {"bad_records", result.bad_records}});
  json.finish();
  options.errors.report();
}

}  // namespace

void add_convert_command(CLI::App& program) {
  auto* command =
      program.add_subcommand("convert", "pack a data set into one checksummed file that is read by position");
  auto options = std::make_shared<ConvertCommandOptions>();
  add_data_options(*command, options->data, options->convert.source.layout)->required();
  add_column_options(*command, options->convert.source.columns, true);
  command
      ->add_option("--to", options->to,
                   "the file to write, or a folder to write NAME.records (or NAME.tar) in, called after the data; "
                   "the file appears "
                   "whole or not at all. Also in a store: s3://BUCKET/KEY, gs:// or az://")
      ->type_name("PATH")
      ->required();
  add_size(*command, "--shard-size", options->convert.shard_bytes,
           "write files of about this size into the folder of --to, which are read as one data set; repeat the "
           "command to resume after an interruption");
  add_choice(*command, "--format", options->format,
             "write record files, or tars in WebDataset's naming: 000000012.jpg, 000000012.cls",
             {"records", "webdataset"});
  add_field(*command, options->convert.source, {.field = "indexed", .name = "--no-index"});
  add_choice(*command, "--split", options->split, "the split to write; without it, both", {"train", "test"});
  add_number(*command, "--max-side", options->convert.max_side,
             "shrink images to this longest side; those that fit stay byte for byte", {.min = 1, .max = 65500});
  add_number(*command, "--quality", options->convert.quality,
             "encode every image again at this JPEG quality; without it, only those that are shrunk, at 90",
             {.min = 1, .max = 100});
  command->add_flag("--apply-orientation", options->convert.apply_orientation,
                    "turn images upright as their EXIF data say, and encode those again");
  options->errors.add_to(*command, /*substitutes=*/false);  // a file has each record once
  add_number(*command, "--threads", options->convert.threads,
             "threads that decode and encode; 0: one per processor", {.min = 0, .max = kMaxThreads});
  add_json_option(*command, options->json);
  command->callback([options] { convert(*options); });
}

}  // namespace headrace::tools
