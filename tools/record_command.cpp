// `headrace evaluate` and `headrace predict`: what a training record makes of data, with nothing but the record.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/text.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/options/common_options.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/options/pipeline_options.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"
#include "headrace/tools/report/page.h"
#include "headrace/tools/runs/worker_run.h"
#include "headrace/train/strategy.h"
#include "headrace/train/training_record.h"

namespace headrace::tools {
namespace {

struct RecordCommandOptions {
  CommonOptions common;
  WorkerFlags workers = {};
  bool silenced = false;
  std::string record;
  std::filesystem::path plan = {};  // in place of the record's own; empty: that
  std::string split = "test";
  CLI::Option* out = nullptr;  // of predict
  CLI::Option* split_option = nullptr;
  std::string out_file = {};
  std::string report = {};  // of evaluate

  void add_to(CLI::App& command, bool has_out) {
    command.add_option("--record", record, "a training record or checkpoint")->type_name("FILE")->required();
    common.add_reading_to(command, /*further_columns=*/false);
    workers.add_to(command);
    split_option = add_choice(command, "--split", split, "which part of the data", {"train", "test"});
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
    if (!has_out) {
      command
          .add_option(
              "--report", report,
              "a page with the confusion matrix and the examples with the highest loss, one HTML file; the "
              "data are read once more for it")
          ->type_name("FILE");
      return;
    }
    out = command
              .add_option("--out", out_file,
                          "where the predictions go, with the names of files and classes: .csv, NumPy's .npz, or "
                          ".npy for the values alone; any other name: JSON lines, as --json")
              ->type_name("FILE")
              ->excludes("--json");
  }

  // Sends predictions that are JSON lines where --json would.
  void settle() {
    if (!out_file.empty() && prediction_format(out_file) == PredictionFormat::kJsonLines) {
      common.json = std::exchange(out_file, {});
    }
  }

  bool split_given() const { return split_option->count() > 0; }

  // Leaves out what only the chief of several workers writes.
  void silence(int rank) {
    common.silence(rank);
    out_file.clear();
    report.clear();
    silenced = true;
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
                          {.option = "--out", .path = out_file},
                          {.option = "--report", .path = report},
                          {.option = "--quarantine", .path = common.errors.quarantine}},
                         {{.option = "--record", .path = record}, {.option = "--plan", .path = plan}});
  }
};

SourceOptions record_source_options(const RecordCommandOptions& options, const InputDescription& input) {
  return {.layout = options.common.layout, .label_count = input.label_count, .columns = options.common.columns};
}

// Returns null if the data have no such split, or no classes where the layout has them.
SourcePtr try_source(const RecordCommandOptions& options, const InputDescription& input, Split split,
                     const char* classes_at) {
  SourceOptions source = record_source_options(options, input);
  if (classes_at != nullptr) source.layout.classes_at = classes_at;
  try {
    return headrace::open_source(options.common.data, split, source);
  } catch (const ConfigError&) {
    return nullptr;
  }
}

// For predictions, which need no labels: the test split, or all there is; images that lie in no class folders have
// no label.
SourcePtr open_unlabelled(const RecordCommandOptions& options, const InputDescription& input) {
  for (const Split split : {Split::kTest, Split::kTrain}) {
    if (options.split_given() && split != parse_split(options.split)) continue;
    if (SourcePtr source = try_source(options, input, split, nullptr)) return source;
    if (!options.common.layout.empty()) continue;
    if (SourcePtr source = try_source(options, input, split, "none")) return source;
  }
  return headrace::open_source(options.common.data, parse_split(options.split),
                               record_source_options(options, input));
}

SourcePtr open_source(const RecordCommandOptions& options, const InputDescription& input) {
  if (options.common.data.empty()) return nullptr;
  if (options.out != nullptr) return open_unlabelled(options, input);
  return headrace::open_source(options.common.data, parse_split(options.split),
                               record_source_options(options, input));
}

// The source as the record says that its net is fed.
Dataset as_recorded(const RecordCommandOptions& options, const InputDescription& input, const SourcePtr& source) {
  if (input.plan.empty()) {
    throw ConfigError(fmt::format("{} cannot say what its net is fed with: {}", options.record, input.reason),
                      "say it as JSON: --plan FILE (pipeline/PLAN.md has the format)");
  }
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
  if (!options.silenced) report_reading(data.reading(), false);
  options.common.refuse_unused(*data.source());
  return data;
}

// Opens what both need on each worker; `use(strategy, input, data, json)` does the work.
template <typename Use>
void with_record(RecordCommandOptions all, const Use& use) {
  all.settle();
  all.check_inputs();
  all.check_outputs();
  const auto work = [&](const std::shared_ptr<Workers>& workers) {
    RecordCommandOptions options = all;
    if (!is_chief(workers)) options.silence(workers->rank());
    options.common.devices = devices_of_worker(options.common.devices, workers.get());
    JsonLines json(options.common.json);
    DeviceGroup devices = options.common.open_devices(DeviceNeed::kKernels);
    Strategy strategy(devices, {.announce = false, .workers = workers, .standalone = true});  // the command asked
    const InputDescription input = record_input(options.record);
    use(options, strategy, input, open_data(options, input), json);
    options.common.errors.report();
    json.finish();
  };
  run_with_workers([&] { return all.workers.open(); }, work);
}

std::vector<std::pair<std::string, std::string>> figures_of(const Evaluation& found) {
  std::vector<std::pair<std::string, std::string>> figures{{"examples", std::to_string(found.examples)},
                                                           {"loss", fmt::format("{:.4f}", found.loss)}};
  for (const MetricValue& metric : found.metrics) {
    if (metric.is_number()) figures.emplace_back(metric.name, fmt::format("{:.4f}", metric.number()));
  }
  return figures;
}

// Predicts once more: a pass that counts keeps no results.
void write_report(const RecordCommandOptions& options, Strategy& strategy, const InputDescription& input,
                  const Dataset& data, const Evaluation& evaluation, std::optional<FileWriter>& file) {
  const Predictions predictions = predict_record(strategy, options.record, data, {.input = options.input()});
  if (!file) return;
  const SourcePtr source = data.source();
  const Classification found = classify(predictions, *source);
  EvaluationPage page{.title = fmt::format("{} on {}", options.record, source->info().name),
                      .figures = figures_of(evaluation),
                      .classes = found.classes,
                      .names = input.classes,
                      .confusion = found.confusion};
  for (const ClassifiedExample& one : found.worst) {
    page.worst.push_back({.name = source->describe(one.record),
                          .label = one.label,
                          .prediction = one.prediction,
                          .loss = one.loss});
  }
  const std::string text = make_page(evaluation_data(page));
  file->append(std::as_bytes(std::span(text)));
  file->commit();
}

void evaluate(const RecordCommandOptions& all) {
  const bool reported = !all.report.empty();  // on every worker, all of which predict for it
  with_record(all, [&](const RecordCommandOptions& options, Strategy& strategy, const InputDescription& input,
                       const Dataset& data, JsonLines& json) {
    std::optional<FileWriter> report;
    if (!options.report.empty()) report.emplace(options.report);
    require_same_classes(input, *data.source());
    const Evaluation found = evaluate_record(strategy, options.record, data, {.input = options.input()});
    nlohmann::ordered_json line{{"loss", found.loss}};
    add_metrics(line, "", found.metrics);
    line["examples"] = found.examples;
    line["seconds"] = found.seconds;
    line["bad_records"] = options.common.errors.bad_records();
    json.write(line);
    if (reported) write_report(options, strategy, input, data, found, report);
    if (json.on_stdout() || !strategy.is_chief()) return;
    print(stdout, "{} - loss: {:.4f}{}\n", count_of(static_cast<std::uint64_t>(found.examples), "example"),
          found.loss, metric_text(found.metrics));
  });
}

// The class that is predicted or, of results that are not of one class, the values.
std::string prediction_text(const NamedPredictions& all, std::size_t example) {
  if (const std::optional<std::size_t> place = all.prediction(example)) {
    return *place < all.classes.size() ? all.classes[*place] : std::to_string(*place);
  }
  const auto first = all.results.values.begin() + static_cast<std::ptrdiff_t>(example * all.width());
  return fmt::format("{:g}", fmt::join(first, first + static_cast<std::ptrdiff_t>(all.width()), " "));
}

// Images that were opened without classes have one label, which stands for nothing.
NamedPredictions named_predictions(Predictions found, const Source& source, const RecordCommandOptions& options,
                                   const InputDescription& input) {
  NamedPredictions all{.results = std::move(found), .names = {}, .labels = {}, .classes = input.classes};
  ExampleNames named = name_examples(all.results.records, source, input.classes);
  if (options.common.layout.classes_at == "none") std::ranges::fill(named.labels, std::nullopt);
  all.names = std::move(named.names);
  all.labels = std::move(named.labels);
  return all;
}

// One line an example: its name and record, its label where that is known, the class that is predicted, if its
// results are of one, with its name, and all values.
nlohmann::ordered_json prediction_line(const NamedPredictions& all, std::size_t example) {
  nlohmann::ordered_json line{{"name", all.names[example]}, {"record", all.results.records[example]}};
  if (all.labels[example]) line["label"] = *all.labels[example];
  const std::optional<std::size_t> best = all.prediction(example);
  const std::size_t width = all.width();
  if (best) line["prediction"] = *best;
  if (best && *best < all.classes.size()) line["class"] = all.classes[*best];
  const auto first = all.results.values.begin() + static_cast<std::ptrdiff_t>(example * width);
  line["values"] = std::vector<float>(first, first + static_cast<std::ptrdiff_t>(width));
  return line;
}

void predict(const RecordCommandOptions& all) {
  with_record(all, [&](const RecordCommandOptions& options, Strategy& strategy, const InputDescription& input,
                       const Dataset& data, JsonLines& json) {
    std::optional<PredictionFile> file;
    if (!options.out_file.empty()) file.emplace(options.out_file);
    Predictions found = predict_record(strategy, options.record, data, {.input = options.input()});
    if (!strategy.is_chief()) return;
    const SourcePtr source = data.source();
    const NamedPredictions named = named_predictions(std::move(found), *source, options, input);
    if (file) file->write(named);
    for (std::size_t i = 0; i < named.names.size(); ++i) {
      json.write(prediction_line(named, i));
      if (options.common.json.empty() && !file) {
        print(stdout, "{}: {}\n", named.names[i], prediction_text(named, i));
      }
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
    options->workers.read(*command);
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
