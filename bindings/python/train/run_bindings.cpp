#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/options.h"
#include "headrace/bindings/python/train/arrays.h"
#include "headrace/bindings/python/train/bindings.h"
#include "headrace/bindings/python/train/interrupts.h"
#include "headrace/bindings/python/train/python_model.h"
#include "headrace/train/training_record.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// run() without the interpreter's lock, for Ctrl-C to end; if it saves checkpoints, for SIGTERM too.
template <typename Run>
auto unlocked(const Run& run, bool saves = false) {
  const InterruptWatch watch(saves);
  auto result = [&] {
    const WithoutGil unlocked_here;
    try {
      return run(watch.stop());
    } catch (const Error& error) {
      // An evaluation that was stopped: by an interrupt, which is what is raised then.
      if (error.code() == ErrorCode::kCancelled) InterruptWatch::raise();
      throw;
    }
  }();
  InterruptWatch::raise();
  return result;
}

std::optional<CheckpointOptions> checkpoints_of(const nb::dict& said) {
  if (said.size() == 0) return std::nullopt;
  CheckpointOptions options;
  if (said.contains("record")) {
    options.record = nb::cast<std::filesystem::path>(said["record"]);
    options.input = nb::cast<std::optional<Dataset>>(said["input"]);
    options.views = views_of(nb::cast<std::optional<std::string>>(said["views"]));
    return options;
  }
  nb::dict others;
  others.update(said);
  for (const char* one : {"folder", "input"}) PyDict_DelItemString(others.ptr(), one);
  options = read_options<CheckpointOptions>(others, "Checkpoints");
  options.folder = nb::cast<std::filesystem::path>(said["folder"]);
  options.input = nb::cast<std::optional<Dataset>>(said["input"]);
  return options;
}

// What Model.fit() takes by name: the fit's own options and those of its loader.
void show_fit(FitOptions& options, OptionVisitor& visit) {
  options.each_field(visit);
  show(options.input, visit);
}

nb::dict fit(PythonModel& model, const Dataset& train, const std::optional<Dataset>& validation,
             const nb::list& callbacks, const nb::dict& checkpoints, const nb::dict& given, nb::object owner) {
  const PythonModel::Use use = model.use();
  const FitOfModel of(std::move(owner));
  const PythonOutput output;
  FitOptions options;
  OptionReader reader(given);
  show_fit(options, reader);
  reader.refuse_unknown("fit()");
  options.input.while_waiting = InterruptWatch::poll;
  options.validation = validation;
  options.callbacks = callbacks_of(callbacks);
  options.callbacks.push_back({.on_step = [](const StepReport&, FitControl&) { InterruptWatch::look(); },
                               .on_epoch_end = [](const EpochReport&, FitControl&) { InterruptWatch::look(); }});
  options.output = output.file();
  options.checkpoints = checkpoints_of(checkpoints);
  const History history = unlocked(
      [&](const std::atomic<bool>* stop) {
        options.stop = stop;
        return use->fit(train, options);
      },
      options.checkpoints.has_value());
  nb::dict lists;
  for (const auto& [name, values] : history.lists()) lists[name.c_str()] = nb::cast(values);
  return lists;
}

EvaluateOptions evaluate_options(std::uint64_t steps, const nb::dict& input, int virtual_shards,
                                 bool averaged_weights) {
  EvaluateOptions options;
  options.steps = steps;
  options.input = input_of(input);
  options.virtual_shards = virtual_shards;
  options.averaged_weights = averaged_weights;
  return options;
}

nb::dict dict_of_evaluation(const Evaluation& evaluation) {
  nb::dict values;
  values["loss"] = evaluation.loss;
  values.update(values_of_metrics(evaluation.metrics));
  values["examples"] = evaluation.examples;
  values["seconds"] = evaluation.seconds;
  return values;
}

// (values, records, values of the other outputs by layer, task or None, whether values are logits)
nb::tuple values_and_records(Predictions predictions) {
  nb::dict others;
  for (OutputValues& other : predictions.others) {
    others[other.layer.c_str()] = array_of(std::move(other.values), other.shape);
  }
  return nb::make_tuple(array_of(std::move(predictions.values), predictions.shape),
                        array_of(std::move(predictions.records)), others,
                        predictions.task ? nb::cast(to_text(predictions.task->task)) : nb::none(),
                        predictions.task && predictions.task->from_logits);
}

nb::dict evaluate(PythonModel& model, const Dataset& data, std::uint64_t steps, const nb::dict& input,
                  const std::optional<std::string>& views, int virtual_shards, bool averaged_weights) {
  const PythonModel::Use use = model.use();
  EvaluateOptions options = evaluate_options(steps, input, virtual_shards, averaged_weights);
  options.views = views_of(views);
  const Evaluation evaluation = unlocked([&](const std::atomic<bool>* stop) {
    options.stop = stop;
    return use->evaluate(data, options);
  });
  return dict_of_evaluation(evaluation);
}

// Returns the source if the dataset is nothing else, for the form that a record describes; null for one in
// batches. Throws ConfigError for operations without batches.
SourcePtr bare_source(const Dataset& data) {
  if (Dataset::from(data.source()).to_json() == data.to_json()) return data.source();
  throw ConfigError("the dataset has operations, but no batches",
                    "give what headrace.open() returns, for the operations that the file tells, or end it with "
                    "batch()");
}

nb::dict evaluate_file(const StrategyPtr& strategy, const std::filesystem::path& file, const Dataset& data,
                       bool batched, std::uint64_t steps, const nb::dict& input,
                       const std::optional<std::string>& views, const nb::dict& own) {
  EvaluateOptions options = evaluate_options(steps, input, 0, false);
  options.views = views_of(views);
  const CustomParts parts = custom_parts_of(own, strategy->get().devices());
  const SourcePtr source = batched ? nullptr : bare_source(data);
  return dict_of_evaluation(unlocked([&](const std::atomic<bool>* stop) {
    options.stop = stop;
    return source ? evaluate_record(strategy->get(), file, source, options, parts)
                  : evaluate_record(strategy->get(), file, data, options, parts);
  }));
}

nb::tuple predict_file(const StrategyPtr& strategy, const std::filesystem::path& file, const Dataset& data,
                       bool batched, std::uint64_t steps, const nb::dict& input, const nb::dict& own) {
  EvaluateOptions options = evaluate_options(steps, input, 0, false);
  const CustomParts parts = custom_parts_of(own, strategy->get().devices());
  const SourcePtr source = batched ? nullptr : bare_source(data);
  return values_and_records(unlocked([&](const std::atomic<bool>* stop) {
    options.stop = stop;
    return source ? predict_record(strategy->get(), file, source, options, parts)
                  : predict_record(strategy->get(), file, data, options, parts);
  }));
}

nb::tuple predict(PythonModel& model, const Dataset& data, std::uint64_t steps, const nb::dict& input,
                  bool averaged_weights) {
  const PythonModel::Use use = model.use();
  EvaluateOptions options = evaluate_options(steps, input, 0, averaged_weights);
  return values_and_records(unlocked([&](const std::atomic<bool>* stop) {
    options.stop = stop;
    return use->predict(data, options);
  }));
}

// (names, labels: -1 where unknown). Labels are numbers among the classes of the net, or as the data have them.
nb::tuple names_of(const Dataset& data, const std::vector<std::uint64_t>& records,
                   const std::vector<std::string>& net_classes) {
  ExampleNames found = name_examples(records, *data.source(), net_classes);
  std::vector<std::int64_t> labels;
  for (const std::optional<std::int64_t>& label : found.labels) labels.push_back(label.value_or(-1));
  return nb::make_tuple(std::move(found.names), array_of(std::move(labels)));
}

// (confusion matrix, the worst as (record, name, label, prediction, loss))
nb::tuple classified(PythonModel& model, const Dataset& data, std::size_t worst, std::uint64_t steps,
                     const nb::dict& input, bool averaged_weights) {
  const PythonModel::Use use = model.use();
  EvaluateOptions options = evaluate_options(steps, input, 0, averaged_weights);
  const SourcePtr source = data.source();
  const Classification found = unlocked([&](const std::atomic<bool>* stop) {
    options.stop = stop;
    return classify(use->predict(data, options), *source, worst);
  });
  nb::list examples;
  for (const ClassifiedExample& one : found.worst) {
    examples.append(nb::make_tuple(one.record, source->describe(one.record), one.label, one.prediction, one.loss));
  }
  return nb::make_tuple(array_of(found.confusion, Shape{found.classes, found.classes}), examples);
}

}  // namespace

void bind_record_runs(nb::module_& module) {
  OptionLister lister;
  FitOptions usual;
  usual.each_field(lister);
  module.attr("fit_options_doc") = options_text(lister.list(), "        ");
  module.attr("checkpoint_options_doc") = options_text(list_options(CheckpointOptions()), "    ");
  show(usual.input, lister);
  std::vector<ListedOption> options = lister.list();
  std::erase_if(options, [](const ListedOption& one) {
    return one.name == "class_weight" || one.name == "start" || one.name == "converted" ||
           one.name == "trace_spans" || one.name.starts_with("world_");
  });
  bind_typed_dict(module, "FitOptions", std::move(options));
  module.def("evaluate_record", &evaluate_file, "strategy"_a, "file"_a, "data"_a, "batched"_a, nb::kw_only(),
             "steps"_a, "input"_a, "views"_a.none(), "own"_a);
  module.def("predict_record", &predict_file, "strategy"_a, "file"_a, "data"_a, "batched"_a, nb::kw_only(),
             "steps"_a, "input"_a, "own"_a);
  module.def("names_of_examples", &names_of, "data"_a, "records"_a, "net_classes"_a);
  module.def(
      "classes_of_record", [](const std::filesystem::path& file) { return record_input(file).classes; }, "file"_a);
}

void bind_runs(nb::class_<PythonModel>& model) {
  model.def("fit", &fit, "train"_a, nb::kw_only(), "validation"_a.none(), "callbacks"_a, "checkpoints"_a,
            "options"_a, "owner"_a);
  model.def("evaluate", &evaluate, "data"_a, nb::kw_only(), "steps"_a, "input"_a, "views"_a.none(),
            "virtual_shards"_a, "averaged_weights"_a);
  model.def("predict", &predict, "data"_a, nb::kw_only(), "steps"_a, "input"_a, "averaged_weights"_a);
  model.def("classify", &classified, "data"_a, nb::kw_only(), "worst"_a, "steps"_a, "input"_a,
            "averaged_weights"_a);
}

}  // namespace headrace::python
