// `headrace index`: writes or refreshes the index of a data set.
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

struct IndexCommandOptions {
  std::filesystem::path data;
  std::string split;
  IndexOptions index;
  std::string json;
};

void index(IndexCommandOptions options) {
  if (!options.split.empty()) options.index.split = parse_split(options.split);
  if (path_kind(options.index.to) == PathKind::kDirectory) options.index.to /= ".headrace-index";
  check_outputs({{.option = "--to", .path = options.index.to}, {.option = "--json", .path = options.json}},
                {{.option = "DATA", .path = options.data}});
  JsonLines json(options.json);
  const Stopwatch watch;
  const IndexResult result = index_dataset(options.data, options.index);
  const double seconds = watch.seconds();
  report_reading(result.reading, true);
  print(json.text_output(), "{} in {}, {} bytes of index in {:.2f} s{}\n", count_of(result.records, "record"),
        count_of(result.shards, "shard"), with_commas(result.bytes), seconds,
        options.index.to.empty() ? std::string() : ": " + options.index.to.string());
  json.write(
      {{"records", result.records}, {"shards", result.shards}, {"bytes", result.bytes}, {"seconds", seconds}});
  json.finish();
}

}  // namespace

void add_index_command(CLI::App& program) {
  auto* command = program.add_subcommand(
      "index", "write or refresh what later openings of tars and TFRecord files read first");
  auto options = std::make_shared<IndexCommandOptions>();
  command->add_option("DATA", options->data, "a folder, archive, TFRecord file or URL")
      ->type_name("DATA")
      ->required();
  for (const char* field : {"train_folder", "test_folder"})
    add_field(*command, options->index.source.layout, {field});
  add_column_options(*command, options->index.source.columns, true);
  command
      ->add_option(
          "--to", options->index.to,
          "a file for the indexes of all shards, or a folder to write .headrace-index in; beside the data "
          "that is found by every later opening, on any machine")
      ->type_name("PATH");
  add_choice(*command, "--split", options->split, "the split to index; without it, both", {"train", "test"});
  add_json_option(*command, options->json);
  command->callback([options] { index(*options); });
}

}  // namespace headrace::tools
