#include "headrace/train/step/training_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/train/model/submission.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

std::string layer_text(const Layer& layer, Activation epilogue) {
  static constexpr const char* kBehind[] = {"", " and the ReLU after it", " and the GELU after it",
                                            " and the SiLU after it"};
  return fmt::format("{}{}", label(layer.name(), layer.kind()), kBehind[static_cast<int>(epilogue)]);
}

std::string traced_place(const StepSlot& step, const Strategy& strategy, const ShardSlot& shard) {
  return fmt::format("step {} (batch {} of pass {}), replica {} ({})", step.step, step.position.step,
                     step.position.epoch, shard.replica, strategy.device(shard.replica).info().name);
}

}  // namespace

NanTrace::NanTrace(ModelState& model, TrainingStep& step) : model_(model), step_(step) {
  const Graph& graph = *model.graph;
  for (int id = 0; id < graph.size(); ++id) {
    if (graph.layer(id).kind() == "input") inputs_.push_back(id);
  }
  for (int shard = 0; shard < step.shards().local_shards(); ++shard) {
    kept_.emplace_back();
    for (const int input : inputs_) {
      kept_.back().push_back(step.shards().stream(shard).allocate(step.program().value(shard, input).bytes()));
    }
  }
  step.queue().on_done = [this](const StepSlot& done) { last_ = &done; };
}

void NanTrace::keep_inputs(int shard) const {
  const std::vector<Buffer>& kept = kept_[static_cast<std::size_t>(shard)];
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const TensorView input = step_.program().value(shard, inputs_[i]);
    step_.shards().stream(shard).copy(kept[i].data(), input.data, input.bytes());
  }
}

void NanTrace::check(const LearningPhase& phase) {
  step_.queue().drain();
  const Shards& shards = step_.shards();
  bool all_finite = true;
  for (int shard = 0; shard < shards.local_shards(); ++shard) all_finite = all_finite && finite(shard);
  if (all_finite) return;
  std::vector<NumberProbe> probes;
  for (int shard = 0; shard < shards.local_shards(); ++shard) probes.emplace_back(shards.stream(shard));
  submit_and_wait(*model_.strategy, [&] {
    submit_to_all(*model_.strategy, last_->step, [&](int r) {
      for (int shard = shards.first_of(r); shard < shards.first_of(r + 1); ++shard) {
        submit_again(shard, phase, probes[static_cast<std::size_t>(shard)]);
      }
      shards.join(r);
    });
  });
  name_the_first(probes);
}

bool NanTrace::finite(int shard) const {
  const ShardSlot& slot = last_->shards[static_cast<std::size_t>(shard)];
  if (!step_.program().objective()->finite_losses(slot.totals)) return false;
  const auto count = static_cast<std::size_t>(model_.layout.trained_elements());
  std::vector<float> gradients(count);
  Stream& stream = step_.shards().stream(shard);
  stream.copy(gradients.data(), step_.program().binding(shard).gradients, count * sizeof(float));
  stream.synchronize();
  return !first_not_finite(gradients.data(), count);
}

std::int64_t NanTrace::real_elements(int shard, const TensorView& rows) const {
  if (!rows.defined()) return 0;
  const std::int64_t examples = last_->shards[static_cast<std::size_t>(shard)].examples;
  return rows.elements() / rows.shape[0] * examples;
}

// Repeats the batch exactly: everything random is a function of the step. Totals and accumulated gradients count
// it twice, which is harmless because the training ends.
void NanTrace::submit_again(int shard, const LearningPhase& phase, NumberProbe& probe) const {
  const MirroredProgram& program = step_.program();
  const ReplicaStreams streams{.compute = step_.shards().stream(shard)};
  const std::vector<Buffer>& kept = kept_[static_cast<std::size_t>(shard)];
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const TensorView input = program.value(shard, inputs_[i]);
    streams.compute.copy(input.data, kept[i].data(), input.bytes());
    probe.look(fmt::format("field '{}' of the data", model_.graph->layer(inputs_[i]).name()), input,
               real_elements(shard, input));
  }
  const ProgramWatch watched = watch(shard, probe);
  step_.submit({.forward = true}, shard, phase, streams, watched);
  for (const TensorView& gradient : program.result_gradients(shard)) {
    probe.look(fmt::format("the gradient of {}", loss_name({})), gradient, real_elements(shard, gradient));
  }
  step_.submit({.backward = true}, shard, phase, streams, watched);
}

ProgramWatch NanTrace::watch(int shard, NumberProbe& probe) const {
  return [this, shard, &probe](ProgramMoment moment, const LayerContext& call) {
    const Graph& graph = *model_.graph;
    const std::string layer = layer_text(graph.layer(call.id), call.epilogue);
    switch (moment) {
      case ProgramMoment::kBeforeForward: return look_at_variables(call, false, probe);
      case ProgramMoment::kAfterForward:
        return probe.look(fmt::format("the result of {}", layer), call.output, real_elements(shard, call.output));
      case ProgramMoment::kBeforeBackward:
        return probe.look(fmt::format("the gradient that {} is given, a sum over the layers after it,", layer),
                          call.output_gradient, real_elements(shard, call.output_gradient));
      case ProgramMoment::kAfterBackward:
        look_at_variables(call, true, probe);
        for (std::size_t i = 0; i < call.input_gradients.size(); ++i) {
          const Layer& input = graph.layer(graph.inputs(call.id)[i]);
          probe.look(
              fmt::format("the gradient that {} gives, in the backward pass, for '{}'", layer, input.name()),
              call.input_gradients[i], real_elements(shard, call.input_gradients[i]));
        }
    }
  };
}

// Running statistics are not operands in training, and the first pass has changed them.
void NanTrace::look_at_variables(const LayerContext& call, bool gradients, NumberProbe& probe) const {
  const auto [first, end] = model_.layout.of_layer(call.id);
  const std::string layer = layer_text(model_.graph->layer(call.id), call.epilogue);
  for (std::size_t i = first; i < end; ++i) {
    const Variable& variable = model_.layout.variables()[i];
    if (variable.spec.role == VariableRole::kState) continue;
    const TensorView tensor = gradients ? call.variable_gradients[i - first] : call.variables[i - first];
    const char* rounded = tensor.dtype == DType::kBF16 ? ", rounded to bf16," : "";
    probe.look(gradients ? fmt::format("the gradient that {} gives, in the backward pass, for variable '{}'",
                                       layer, variable.name)
                         : fmt::format("variable '{}'{}", variable.name, rounded),
               tensor, tensor.defined() ? tensor.elements() : 0);
  }
}

std::string NanTrace::loss_name(const std::vector<bool>& terms) const {
  std::vector<std::string> names;
  const std::vector<LossTerm>& all = model_.compiled->loss.terms;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (terms.empty() || terms[i]) names.push_back(all[i].function->name());
  }
  return fmt::format("the loss '{}'", fmt::join(names, "' + '"));
}

// Called if results and gradients are finite, so what the loss made of the results is not.
void NanTrace::name_the_loss() const {
  const Objective& objective = *step_.program().objective();
  for (const ShardSlot& slot : last_->shards) {
    if (objective.finite_losses(slot.totals)) continue;
    check_class_numbers(objective, *last_, slot);
    ObjectiveTotals totals = objective.no_totals();
    objective.add(slot.totals, totals);
    std::vector<bool> terms;
    for (std::size_t i = 0; i < model_.compiled->loss.terms.size(); ++i) {
      terms.push_back(!std::isfinite(totals.sums[i].loss));
    }
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} makes numbers that are not finite of results that are, in {}", loss_name(terms),
                            traced_place(*last_, *model_.strategy, slot)),
                "look for a logarithm of 0 or a division by 0 in it");
  }
}

void NanTrace::name_the_first(const std::vector<NumberProbe>& probes) const {
  int first = -1;
  for (std::size_t shard = 0; shard < probes.size(); ++shard) {
    const auto& found = probes[shard].found();
    if (!found) continue;
    const bool earlier = first < 0 || found->look < probes[static_cast<std::size_t>(first)].found()->look;
    if (earlier) first = static_cast<int>(shard);
  }
  if (first < 0) {
    name_the_loss();
    throw Error(ErrorCode::kDevice,
                fmt::format("the numbers of step {} were not finite, but are when it is run again", last_->step),
                "suspect the device or its memory: train on another one");
  }
  const NumberProbe::Found& found = *probes[static_cast<std::size_t>(first)].found();
  const ShardSlot& slot = last_->shards[static_cast<std::size_t>(first)];
  const std::string where = traced_place(*last_, *model_.strategy, slot);
  const std::int64_t width = found.shape.rank() > 0 ? found.shape.elements() / found.shape[0] : 1;
  const auto row = static_cast<std::size_t>(found.element / width);
  const bool rows = found.shape.rank() > 0 && found.shape[0] == step_.program().program().options().rows;
  const bool known = rows && row < slot.records.size() && found.what.find("variable '") == std::string::npos;
  const std::string record = known ? fmt::format(", of record {}", slot.records[row]) : std::string();
  const std::string message =
      fmt::format("{} is the first to hold a number that is not finite: {} at element {} of shape {}{}, in {}",
                  found.what, found.value, found.element, found.shape.to_string(), record, where);
  if (known && found.what.starts_with("field '")) {
    throw DataError(ErrorCode::kDataCorrupt, message, {.source = found.what, .record = slot.records[row]},
                    "correct the data");
  }
  throw Error(ErrorCode::kInvalidArgument, message,
              "lower the learning rate, limit the gradients' norm, or look at what this operation is given");
}

void NanTrace::check_update(std::uint64_t step) const {
  try {
    model_.variables.check_finite();
  } catch (const Error& error) {
    throw Error(
        error.code(),
        fmt::format("{}: the loss and each replica's gradients in step {} are finite, their sum or the update "
                    "is not",
                    error.message(), step),
        "lower the learning rate, or limit the gradients' norm");
  }
}

}  // namespace headrace
