#include "headrace/train/step/objective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/layers.h"

namespace headrace {
namespace {

// Kinds of layers whose results are any numbers whatever they are given.
constexpr std::array<std::string_view, 15> kComputing{
    "dense", "conv", "conv_transpose", "depthwise_conv", "batch_norm", "layer_norm", "embedding", "attention",
    "relu",  "gelu", "silu",           "tanh",           "leaky_relu", "elu",        "softplus"};
// Kinds whose results are, or lie between, those that they are given.
constexpr std::array<std::string_view, 4> kChoosing{"average_pool", "global_average_pool", "max_pool", "concat"};

template <typename Kinds>
bool is_among(const Kinds& kinds, const std::string& kind) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

ResultValues result_values(const Graph& graph, int id) {
  const Layer& layer = graph.layer(id);
  const std::string kind = layer.kind();
  if (kind == to_text(Activation::kSigmoid) || layer.traits(Mode::kEvaluate).softmax) {
    return ResultValues::kProbabilities;
  }
  if (is_among(kComputing, kind)) return ResultValues::kNumbers;
  if (!is_among(kChoosing, kind) && !layer.traits(Mode::kEvaluate).view) return ResultValues::kUnknown;
  const auto& inputs = graph.inputs(id);
  const ResultValues first = result_values(graph, inputs.front());
  const bool alike = std::ranges::all_of(inputs, [&](int input) { return result_values(graph, input) == first; });
  return alike ? first : ResultValues::kUnknown;
}

ResultInfo info_of(const Graph& graph, std::size_t output) {
  const int id = graph.outputs().at(output);
  const Layer& last = graph.layer(id);
  return {.shape = last.shape(),
          .layer = label(graph.name(id), last.kind()),
          .softmax = last.traits(Mode::kEvaluate).softmax,
          .values = result_values(graph, id)};
}

[[noreturn]] void refuse_task(const LossTerm& term, const ResultInfo& result, const std::string& why) {
  throw ConfigError(fmt::format("the loss '{}' is said to be of results that are {}, but {}",
                                term.function->name(), to_text(*term.task), why),
                    fmt::format("say what {} gives, or change the net or the loss", result.layer));
}

// Returns what is said of the results. `known`: what the loss and the net say without it.
ResultTask said_task(const LossTerm& term, const ResultInfo& result, const std::optional<ResultTask>& known) {
  const Task task = *term.task;
  if ((task == Task::kBinary) != (result.shape.elements() == 1) && task != Task::kRegression) {
    refuse_task(term, result, fmt::format("{} gives {} for an example", result.layer, result.shape.to_string()));
  }
  if (known && known->task == Task::kCategorical && task != known->task) {
    refuse_task(term, result, fmt::format("those of {} are categorical", result.layer));
  }
  std::optional<bool> logits = term.from_logits;
  if (known) logits = known->from_logits;
  if (!logits && result.values == ResultValues::kProbabilities) logits = false;
  if (!logits && task != Task::kRegression) {
    throw ConfigError(
        fmt::format("nothing says whether the results of {} are logits or probabilities", result.layer),
        joined({advice("say {} beside the task", named("CrossEntropyOptions::from_logits", "true")),
                named("CrossEntropyOptions::from_logits", "false")}));
  }
  const bool contradicted = result.values == ResultValues::kProbabilities && logits.value_or(false);
  if (contradicted || (term.from_logits && *term.from_logits != *logits)) {
    refuse_task(term, result, fmt::format("{} gives {}", result.layer, *logits ? "logits" : "probabilities"));
  }
  return {task, task != Task::kRegression && *logits};
}

std::optional<ResultTask> task_of(const LossTerm& term, const ResultInfo& result) {
  std::optional<ResultTask> known = term.function->task(result);
  if (result.softmax) known = {Task::kCategorical, false};
  return term.task ? said_task(term, result, known) : known;
}

}  // namespace

std::size_t output_of(const Graph& graph, const std::string& who, const std::string& layer) {
  if (layer.empty()) return 0;
  std::string names;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const std::string& name = graph.name(graph.outputs()[i]);
    if (name == layer) return i;
    names += (i == 0 ? "'" : ", '") + name + "'";
  }
  throw ConfigError(
      fmt::format("{} is of the result of layer '{}', but the model gives that of {} alone", who, layer, names));
}

// A term that reads the results as classes decides, if others read them as numbers or do not say; two that read
// them as different ones decide nothing.
ResultInfo result_info(const Graph& graph, const Loss& loss, std::size_t output) {
  ResultInfo info = info_of(graph, output);
  if (info.softmax) info.task = {Task::kCategorical, false};
  std::string names;
  bool silent = false, differ = false;
  for (const LossTerm& term : loss.terms) {
    if (output_of(graph, term.function->name(), term.result) != output) continue;
    names += (names.empty() ? "" : " and ") + term.function->name();
    const std::optional<ResultTask> task = task_of(term, info);
    const bool number = task && task->task == Task::kRegression;
    silent = silent || !task;
    if (!task || (number && info.task)) continue;
    if (!info.task || info.task->task == Task::kRegression) {
      info.task = task;
    } else {
      differ = differ || *info.task != *task;
    }
  }
  const bool regression = info.task && info.task->task == Task::kRegression;
  if (differ || (silent && regression)) info.task.reset();
  info.why = names.empty() ? "no loss is of them" : "the loss is " + names;
  return info;
}

std::vector<bool> leaves_out_softmax(const Graph& graph, const Loss& loss) {
  std::vector<bool> left_out;
  for (std::size_t output = 0; output < graph.outputs().size(); ++output) {
    std::size_t terms = 0, taking = 0;
    for (const LossTerm& term : loss.terms) {
      if (output_of(graph, term.function->name(), term.result) != output) continue;
      ++terms;
      taking += term.function->form() == ResultForm::kLogits ? 1 : 0;
    }
    const bool softmax = graph.layer(graph.outputs()[output]).traits(Mode::kEvaluate).softmax;
    if (softmax && taking > 0 && taking < terms) {
      throw ConfigError("one term of the loss takes the logits of the softmax, another its probabilities",
                        "end the net with the logits, or use losses of one kind");
    }
    left_out.push_back(softmax && taking > 0);
  }
  return left_out;
}

void check_loss(const Graph& graph, const Loss& loss) {
  if (loss.terms.empty()) throw ConfigError("the loss has no terms", "name one, such as mean_squared_error()");
  for (const LossTerm& term : loss.terms) {
    if (term.function == nullptr) throw ConfigError("a term of the loss has no function");
    const ResultInfo info = info_of(graph, output_of(graph, term.function->name(), term.result));
    term.function->check_result(info);
    const std::optional<ResultTask> task = task_of(term, info);
    const bool weighted = !term.weight_field.empty() || !term.class_weights.empty();
    if (weighted && !term.function->takes_weights()) {
      throw ConfigError("the loss '" + term.function->name() + "' does not weigh examples",
                        "let its submit() use LossCall::weights and its takes_weights() return true");
    }
    const bool has_class = task && (task->task == Task::kBinary || task->task == Task::kCategorical);
    if (term.class_weights.empty() || has_class) continue;
    throw ConfigError(fmt::format("classes are given weights, but the results of {} are {}", info.layer,
                                  task ? to_text(task->task) : "said to be nothing by the loss"),
                      task ? "weigh examples by a field of the data instead"
                           : advice("say what they are: {}", named("Loss::for_task()")));
  }
}

}  // namespace headrace
