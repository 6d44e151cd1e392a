// `headrace evaluate` and `headrace predict`: what a training record makes of data, with nothing but the record.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "headrace/devices/base/counted.h"
#include "headrace/devices/base/error.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/options/common_options.h"
#include "headrace/tools/options/data_options.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/options/plan_file.h"
#include "headrace/tools/options/worker_options.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/metric_lines.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"
#include "headrace/tools/runs/worker_run.h"
#include "headrace/train/strategy.h"
#include "headrace/train/training_record.h"

namespace headrace::tools {
namespace {

struct RecordCommandOptions {
  CommonOptions common;
  WorkerFlags workers = {};
  std::string record;
  std::filesystem::path plan = {};  // in place of the record's own; empty: that
  std::string split = "test";
  CLI::Option* out = nullptr;  // of predict

  void add_to(CLI::App& command, bool has_out) {
    command.add_option("--record", record, "a training record or checkpoint")->type_name("FILE")->required();
    common.add_reading_to(command, /*further_columns=*/false);
    workers.add_to(command);
    auto* split_option = add_choice(command, "--split", split, "which part of the data", {"train", "test"});
    split_option->capture_default_str();
    CLI::Option* data = command.get_option("--data");
    for (const char* name :
         {"--classes-at", "--train-folder", "--test-folder", "--image-column", "--label-column", "--label-type"})
      command.get_option(name)->needs(data);
    split_option->needs(data);
    command
        .add_option("--plan", plan,
                    "a plan as JSON (pipeline/PLAN.md) that says what is done to the data, in place of what the "
                    "record says; without --data its own source is read")
        ->type_name("FILE");
    add_json_option(command, common.json);
    if (!has_out) return;
    out = command
              .add_option("--out", common.json, "where the predictions go, as JSON lines: --json by another name")
              ->type_name("FILE")
              ->excludes("--json");
  }

  LoaderOptions input() const {
    LoaderOptions input = common.loader();
    input.prefetch = common.prefetch;
    return input;
  }

  void check_inputs() const {
    if (!common.data.empty() || !plan.empty()) return;
    throw ConfigError("neither --data nor --plan is given",
                      "name the data, or the file of a plan that opens them");
  }

  void check_outputs() const {
    tools::check_outputs(common);
    tools::check_outputs({{.option = out != nullptr && out->count() > 0 ? "--out" : "--json", .path = common.json},
                          {.option = "--quarantine", .path = common.errors.quarantine}},
                         {{.option = "--record", .path = record}, {.option = "--plan", .path = plan}});
  }
};

void warn_of_assumed(const std::string& record) {
  print(
      stderr,
      "headrace: warning: {} is of an earlier version, which did not note what its net is fed with: the data are "
      "taken as they are; --plan FILE says otherwise\n",
      record);
}

SourcePtr open_source(const RecordCommandOptions& options, const InputDescription& input) {
  if (options.common.data.empty()) return nullptr;
  return headrace::open_source(
      options.common.data, parse_split(options.split),
      {.layout = options.common.layout, .label_count = input.label_count, .columns = options.common.columns});
}

// The source as the record says that its net is fed.
Dataset as_recorded(const RecordCommandOptions& options, const InputDescription& input, const SourcePtr& source) {
  if (input.plan.empty()) {
    throw ConfigError(fmt::format("{} cannot say what its net is fed with: {}", options.record, input.reason),
                      "say it as JSON: --plan FILE (pipeline/PLAN.md has the format)");
  }
  if (input.assumed) warn_of_assumed(options.record);
  try {
    return described_dataset(source, input, options.common.global_batch);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{} does not fit what the net of {} is fed with: {}", source->info().name,
                                  options.record, error.message()),
                      "give data of the kind that it was trained on, or another plan: --plan FILE");
  }
}

Dataset open_data(const RecordCommandOptions& options, const InputDescription& input) {
  const SourcePtr source = open_source(options, input);
  Dataset data = options.plan.empty()
                     ? as_recorded(options, input, source)
                     : read_plan(options.plan, {.data = source, .global_batch = options.common.global_batch});
  report_left_out(data.left_out(), data.columns(), false);
  options.common.warn_of_unused(*data.source());
  return data;
}

// Opens what both need on each worker; `use(strategy, input, data, json)` does the work.
template <typename Use>
void with_record(const RecordCommandOptions& all, const Use& use) {
  all.check_inputs();
  all.check_outputs();
  const auto work = [&](const std::shared_ptr<Workers>& workers) {
    RecordCommandOptions options = all;
    if (!is_chief(workers)) options.common.silence(workers->rank());
    options.common.devices = devices_of_worker(options.common.devices, workers.get());
    JsonLines json(options.common.json);
    DeviceGroup devices = options.common.open_devices(DeviceNeed::kKernels);
    Strategy strategy(devices, {.announce = false, .workers = workers, .standalone = true});  // the command asked
    const InputDescription input = record_input(options.record);
    use(strategy, input, open_data(options, input), json);
    options.common.errors.report();
    json.finish();
  };
  run_with_workers([&] { return all.workers.open(); }, work);
}

void evaluate(const RecordCommandOptions& options) {
  with_record(
      options, [&](Strategy& strategy, const InputDescription& input, const Dataset& data, JsonLines& json) {
        require_same_classes(input, *data.source());
        const Evaluation found = evaluate_record(strategy, options.record, data, {.input = options.input()});
        nlohmann::ordered_json line{{"loss", found.loss}};
        add_metrics(line, "", found.metrics);
        line["examples"] = found.examples;
        line["seconds"] = found.seconds;
        line["bad_records"] = options.common.errors.bad_records();
        json.write(line);
        if (json.on_stdout() || !strategy.is_chief()) return;
        print(stdout, "{} - loss: {:.4f}{}\n", count_of(static_cast<std::uint64_t>(found.examples), "example"),
              found.loss, metric_text(found.metrics));
      });
}

std::string class_text(std::size_t place, const InputDescription& input) {
  return place < input.classes.size() ? input.classes[place] : std::to_string(place);
}

// One line an example: its name and record, its label where that is known, the place of its largest value with the
// name of that class, and all values.
void predict(const RecordCommandOptions& options) {
  with_record(
      options, [&](Strategy& strategy, const InputDescription& input, const Dataset& data, JsonLines& json) {
        const Predictions found = predict_record(strategy, options.record, data, {.input = options.input()});
        if (!strategy.is_chief()) return;
        const SourcePtr source = data.source();
        const std::size_t width = found.records.empty() ? 0 : found.values.size() / found.records.size();
        for (std::size_t i = 0; i < found.records.size(); ++i) {
          const std::span<const float> values(found.values.data() + i * width, width);
          const auto best = static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
          nlohmann::ordered_json line{{"name", source->describe(found.records[i])}, {"record", found.records[i]}};
          if (const std::optional<std::int64_t> label = source->label(found.records[i])) line["label"] = *label;
          line["prediction"] = best;
          if (best < input.classes.size()) line["class"] = input.classes[best];
          line["values"] = std::vector<float>(values.begin(), values.end());
          json.write(line);
          if (options.common.json.empty())
            print(stdout, "{}: {}\n", line["name"].get_ref<std::string&>(), class_text(best, input));
        }
      });
}

template <typename Run>
void add_command(CLI::App& program, const std::string& name, const std::string& what, bool has_out,
                 const Run& run) {
  auto* command = program.add_subcommand(name, what);
  auto options = std::make_shared<RecordCommandOptions>();
  options->add_to(*command, has_out);
  command->callback([options, run, command] {
    options->workers.standalone = command->get_option("--standalone")->count() > 0;
    run(*options);
  });
}

}  // namespace

void add_evaluate_command(CLI::App& program) {
  add_command(program, "evaluate", "loss and metrics of a training record's model on data", /*has_out=*/false,
              evaluate);
}

void add_predict_command(CLI::App& program) {
  add_command(program, "predict", "what a training record's model makes of each example", /*has_out=*/true,
              predict);
}

}  // namespace headrace::tools
