// `headrace evaluate` and `headrace predict`: what a training record makes of data, with nothing but the record.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "headrace/devices/base/counted.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/options/common_options.h"
#include "headrace/tools/options/data_options.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/metric_lines.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"
#include "headrace/train/strategy.h"
#include "headrace/train/training_record.h"

namespace headrace::tools {
namespace {

struct RecordCommandOptions {
  std::string record;
  std::filesystem::path data;
  LayoutOptions layout = {};
  std::string split = "test";
  std::string devices = "auto";
  std::string json;

  void add_to(CLI::App& command) {
    command.add_option("--record", record, "a training record or checkpoint")->type_name("FILE")->required();
    add_data_options(command, data, layout)->required();
    add_choice(command, "--split", split, "which part of the data", {"train", "test"})->capture_default_str();
    command.add_option("--devices", devices, "auto, cpu, cpu:4, cuda:0,1, cuda:0x4")->capture_default_str();
    add_json_option(command, json);
  }

  SourcePtr open() const { return open_source(data, parse_split(split), {.layout = layout}); }
};

// Opens what both need; `use(strategy, source, json)` does the work.
template <typename Use>
void with_record(const RecordCommandOptions& options, const Use& use) {
  check_outputs({{.option = "--json", .path = options.json}},
                {{.option = "--data", .path = options.data}, {.option = "--record", .path = options.record}});
  JsonLines json(options.json);
  CommonOptions common;
  common.devices = options.devices;
  DeviceGroup devices = common.open_devices(DeviceNeed::kKernels);
  Strategy strategy(devices, {.announce = false});
  use(strategy, options.open(), json);
  json.finish();
}

void evaluate(const RecordCommandOptions& options) {
  with_record(options, [&](Strategy& strategy, const SourcePtr& source, JsonLines& json) {
    const Evaluation found = evaluate_record(strategy, options.record, source);
    nlohmann::ordered_json line{{"loss", found.loss}};
    add_metrics(line, "", found.metrics);
    line["examples"] = found.examples;
    line["seconds"] = found.seconds;
    json.write(line);
    if (json.on_stdout()) return;
    print(stdout, "{} - loss: {:.4f}{}\n", count_of(static_cast<std::uint64_t>(found.examples), "example"),
          found.loss, metric_text(found.metrics));
  });
}

// One line an example: its record, the largest of its values and all of them.
void predict(const RecordCommandOptions& options) {
  with_record(options, [&](Strategy& strategy, const SourcePtr& source, JsonLines& json) {
    const Predictions found = predict_record(strategy, options.record, source);
    const std::size_t width = found.records.empty() ? 0 : found.values.size() / found.records.size();
    for (std::size_t i = 0; i < found.records.size(); ++i) {
      const std::span<const float> values(found.values.data() + i * width, width);
      const auto best = std::ranges::max_element(values) - values.begin();
      json.write({{"record", found.records[i]},
                  {"prediction", best},
                  {"values", std::vector<float>(values.begin(), values.end())}});
      if (options.json.empty()) print(stdout, "record {}: {}\n", found.records[i], best);
    }
  });
}

template <typename Run>
void add_command(CLI::App& program, const std::string& name, const std::string& what, const Run& run) {
  auto* command = program.add_subcommand(name, what);
  auto options = std::make_shared<RecordCommandOptions>();
  options->add_to(*command);
  command->callback([options, run] { run(*options); });
}

}  // namespace

void add_evaluate_command(CLI::App& program) {
  add_command(program, "evaluate", "loss and metrics of a training record's model on data", evaluate);
}

void add_predict_command(CLI::App& program) {
  add_command(program, "predict", "what a training record's model makes of each example", predict);
}

}  // namespace headrace::tools
