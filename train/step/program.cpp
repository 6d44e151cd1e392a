#include "headrace/train/step/program.h"

#include <algorithm>

#include "headrace/devices/base/error.h"

namespace headrace {

// The clock of the plan: layer i runs forward at time i and backward at time 2n - i; the loss is at time n.
Program::Program(const Graph& graph, const VariableLayout& layout, const ProgramOptions& options,
                 const std::vector<const Kernels*>& kernels)
    : graph_(&graph),
      layout_(&layout),
      options_(options),
      results_(results_of(graph, options.leaves_out_softmax)) {
  const auto layers = static_cast<std::size_t>(graph.size());
  epilogue_of_.assign(layers, -1);
  producer_of_.assign(layers, -1);
  undone_.assign(layers, false);
  pooling_of_.assign(layers, -1);
  pooled_by_.assign(layers, -1);
  values_.assign(layers, -1);
  gradients_.assign(layers, -1);
  saved_.resize(layers);
  targets_.resize(layers);
  shared_.resize(layers);
  types_ = value_types(graph, options.mode, results_, options.activations);
  if (options.mode == Mode::kTrain) wants_gradient_ = needed([](const Variable&) { return true; });
  find_epilogues(kernels);
  if (options.mode == Mode::kTrain) find_poolings();
  plan_forward();
  if (options.mode == Mode::kTrain) plan_backward();
  memory_.place();
}

bool Program::is_result(int id) const { return std::ranges::find(results_.layers, id) != results_.layers.end(); }

Mode Program::mode_of(int id) const {
  return options_.mode == Mode::kTrain && layout_->has_frozen_state(id) ? Mode::kEvaluate : options_.mode;
}

void Program::find_epilogues(const std::vector<const Kernels*>& kernels) {
  for (int id = 0; id < graph_->size(); ++id) {
    if (!runs(id)) continue;
    const std::optional<Activation> activation = graph_->layer(id).as_epilogue();
    if (!activation) continue;
    const int before = graph_->inputs(id).front();
    const LayerTraits producer = graph_->layer(before).traits(mode_of(before));
    const bool reads_input = graph_->layer(id).traits(mode_of(id)).backward_reads_input;
    const bool undone = options_.mode == Mode::kTrain && undoes_epilogue(before, kernels);
    if (options_.mode == Mode::kTrain && reads_input && !undone) continue;
    if (!producer.takes_epilogue || graph_->consumers(before).size() != 1 || is_result(before)) continue;
    epilogue_of_[static_cast<std::size_t>(before)] = id;
    producer_of_[static_cast<std::size_t>(id)] = before;
    undone_[static_cast<std::size_t>(id)] = undone;
  }
}

bool Program::undoes_epilogue(int id, const std::vector<const Kernels*>& kernels) const {
  const Layer& layer = graph_->layer(id);
  if (layer.traits(mode_of(id)).undoes_epilogue) return true;
  const DType type = types_[static_cast<std::size_t>(id)];
  for (const int input : graph_->inputs(id)) {
    const auto at = static_cast<std::size_t>(input);
    if (wants_gradient_[at] || types_[at] != type) return false;
  }
  return !kernels.empty() && std::ranges::all_of(kernels, [&](const Kernels* each) {
    return layer.recomputes(*each, type, options_.precision);
  });
}

void Program::find_poolings() {
  for (int id = 0; id < graph_->size(); ++id) {
    if (!runs(id) || !graph_->layer(id).traits(mode_of(id)).takes_pooling) continue;
    const int before = graph_->inputs(id).front();
    if (!graph_->layer(before).as_pooling() || graph_->consumers(before).size() != 1 || is_result(before)) {
      continue;
    }
    pooling_of_[static_cast<std::size_t>(id)] = before;
    pooled_by_[static_cast<std::size_t>(before)] = id;
  }
}

int Program::doer(int id) const {
  if (const int pooled_by = pooled_by_[static_cast<std::size_t>(id)]; pooled_by >= 0) return pooled_by;
  const int producer = producer_of_[static_cast<std::size_t>(id)];
  return undone_[static_cast<std::size_t>(id)] ? producer : id;
}

void Program::plan_forward() {
  const bool training = options_.mode == Mode::kTrain;
  for (int id = 0; id < graph_->size(); ++id) {
    if (!runs(id)) continue;
    const Layer& layer = graph_->layer(id);
    const LayerTraits traits = layer.traits(mode_of(id));
    const bool shares = traits.view || fused(id);
    // An activation applied by its producer is never read backward; a pooling reads its input when its doer runs.
    const bool keeps = training && !(fused(id) && doer(id) != id);
    const int runs = std::max(id, doer(id));
    // Inputs are written before the first layer runs.
    const int born = layer.kind() == "input" ? 0 : id;
    value_storage(id) = shares ? value_storage(graph_->inputs(id).front()) : memory_.add(stored(id).bytes(), born);
    memory_.keep(value_storage(id), keeps && traits.backward_reads_output ? time_of_backward(id) : id);
    for (const int input : graph_->inputs(id)) {
      memory_.keep(value_storage(input), keeps && traits.backward_reads_input ? time_of_backward(id) : runs);
    }
    for (const SavedSpec& spec : layer.saved({.rows = options_.rows, .world_replicas = options_.world_replicas})) {
      const int storage = memory_.add(static_cast<std::size_t>(spec.shape.elements()) * size_of(spec.dtype), id);
      memory_.keep(storage, training ? time_of_backward(id) : id);
      saved_[static_cast<std::size_t>(id)].push_back(storage);
    }
  }
  // The loss reads results, or they are copied out afterwards.
  for (const int result : results_.layers) memory_.keep(value_storage(result), 2 * graph_->size() + 1);
}

Program::Needed Program::needed(const std::function<bool(const Variable&)>& learns) const {
  Needed needed(static_cast<std::size_t>(graph_->size()), false);
  for (int id = 0; id < graph_->size(); ++id) {
    if (!runs(id)) continue;
    const auto [first, end] = layout_->of_layer(id);
    bool wanted = false;
    for (std::size_t i = first; i < end; ++i) {
      const Variable& variable = layout_->variables()[i];
      wanted = wanted || (variable.learns() && learns(variable));
    }
    for (const int input : graph_->inputs(id)) wanted = wanted || needed[static_cast<std::size_t>(input)];
    needed[static_cast<std::size_t>(id)] = wanted;
  }
  return needed;
}

void Program::plan_backward() {
  for (const int result : results_.layers) {
    gradient_storage(result) = memory_.add(stored(result).bytes(), graph_->size());
  }
  for (int id = graph_->size() - 1; id >= 0; --id) {
    if (!wants_gradient_[static_cast<std::size_t>(id)]) continue;
    if (mode_of(id) != Mode::kTrain) refuse_frozen_state(id);
    plan_backward_of(id);
    plan_shared_variables(id);
  }
}

void Program::plan_backward_of(int id) {
  const int time = time_of_backward(id);
  memory_.keep(gradient_storage(id), time);
  if (beside(id)) {
    memory_.keep(gradient_storage(id), time_beside_ends(id));
    for (const int input : graph_->inputs(id)) memory_.keep(value_storage(input), time_beside_ends(id));
  }
  bool in_place = graph_->layer(id).traits(mode_of(id)).backward_in_place;
  for (const int input : graph_->inputs(id)) {
    targets_[static_cast<std::size_t>(id)].push_back(target(id, input, in_place, time));
    in_place = false;
  }
}

void Program::refuse_frozen_state(int id) const {
  throw ConfigError(label(graph_->name(id), graph_->layer(id).kind()) +
                        " has frozen statistics, but variables of it or of layers before it learn",
                    "freeze these, too, or unfreeze the statistics");
}

void Program::plan_shared_variables(int id) {
  bool shared = graph_->owner(id) != id;
  for (int other = id + 1; other < graph_->size(); ++other) shared = shared || graph_->owner(other) == id;
  const auto [first, end] = layout_->of_layer(id);
  for (std::size_t i = first; i < end && shared; ++i) {
    const VariableSpec& spec = layout_->variables()[i].spec;
    if (spec.role != VariableRole::kTrained) continue;
    const auto bytes = static_cast<std::size_t>(spec.shape.elements()) * sizeof(float);
    const int storage = memory_.add(bytes, time_of_backward(id));
    if (beside(id)) memory_.keep(storage, time_beside_ends(id));
    shared_[static_cast<std::size_t>(id)].push_back(storage);
  }
}

bool Program::beside(int id) const {
  const Layer& layer = graph_->layer(id);
  return options_.variables_beside && wants_gradient_[static_cast<std::size_t>(id)] &&
         layer.traits(mode_of(id)).variables_beside && layer.has_trained_variables();
}

int Program::time_beside_ends(int id) const {
  for (int next = id - 1; next >= 0; --next) {
    if (beside(next)) return time_of_backward(next) - 1;
  }
  return 2 * graph_->size();
}

Program::GradientTarget Program::target(int id, int input, bool in_place, int time) {
  if (!wants_gradient_[static_cast<std::size_t>(input)]) return {};
  // Written when the doer runs, which may be before its own turn comes.
  const int born = std::min(time, time_of_backward(doer(id)));
  const int written = in_place ? gradient_storage(id) : memory_.add(stored(input).bytes(), born);
  memory_.keep(written, time);
  if (gradient_storage(input) < 0) {
    gradient_storage(input) = written;
    return {.storage = written};
  }
  memory_.keep(gradient_storage(input), time);
  return {.storage = written, .add_to = gradient_storage(input)};
}

TensorView Program::stored(int id) const {
  return {nullptr, graph_->layer(id).shape().with_front(options_.rows), types_[static_cast<std::size_t>(id)]};
}

TensorView Program::place(const ProgramBinding& binding, int storage, const TensorView& what) const {
  return {binding.workspace + memory_.offset(storage), what.shape, what.dtype};
}

TensorView Program::value(const ProgramBinding& binding, int id) const {
  return place(binding, values_[static_cast<std::size_t>(id)], stored(id));
}

TensorView Program::gradient_view(const ProgramBinding& binding, int id, int storage) const {
  if (storage < 0) return {};
  return place(binding, storage, stored(id));
}

std::vector<TensorView> Program::results(const ProgramBinding& binding) const {
  std::vector<TensorView> views;
  for (const int result : results_.layers) views.push_back(value(binding, result));
  return views;
}

std::vector<TensorView> Program::result_gradients(const ProgramBinding& binding) const {
  std::vector<TensorView> views;
  for (const int result : results_.layers) {
    views.push_back(gradient_view(binding, result, gradients_[static_cast<std::size_t>(result)]));
  }
  return views;
}

TensorView Program::variable_view(const ProgramBinding& binding, const Variable& variable) {
  const bool trained = variable.spec.role == VariableRole::kTrained;
  BFloat16* rounded = trained ? binding.rounded_parameters : binding.rounded_state;
  if (variable.spec.product_weights && rounded != nullptr) {
    return {rounded + variable.offset, variable.spec.shape, DType::kBF16};
  }
  const bool apart = variable.spec.role == VariableRole::kFrozen && binding.frozen != nullptr;
  float* arena = trained ? binding.parameters : apart ? binding.frozen : binding.state;
  return {arena + variable.offset, variable.spec.shape, DType::kF32};
}

LayerContext Program::context(const ProgramBinding& binding, int id) const {
  LayerContext context{.stream = binding.stream,
                       .kernels = binding.kernels,
                       .mode = mode_of(id),
                       .precision = options_.precision,
                       .seed = options_.seed,
                       .id = id,
                       .scalars = binding.scalars,
                       .group = binding.group};
  for (const int input : graph_->inputs(id)) context.inputs.push_back(value(binding, input));
  context.output = value(binding, id);
  const auto [first, end] = layout_->of_layer(id);
  for (std::size_t i = first; i < end; ++i) {
    context.variables.push_back(variable_view(binding, layout_->variables()[i]));
  }
  std::size_t next = 0;
  for (const SavedSpec& spec :
       graph_->layer(id).saved({.rows = options_.rows, .world_replicas = options_.world_replicas})) {
    const int storage = saved_[static_cast<std::size_t>(id)][next++];
    context.saved.push_back(place(binding, storage, {nullptr, spec.shape, spec.dtype}));
  }
  if (const int epilogue = epilogue_of_[static_cast<std::size_t>(id)]; epilogue >= 0) {
    context.epilogue = *graph_->layer(epilogue).as_epilogue();
    context.undoes_epilogue = undone_[static_cast<std::size_t>(epilogue)];
  }
  if (const int pooling = pooling_of_[static_cast<std::size_t>(id)]; pooling >= 0) {
    context.prologue = prologue(binding, pooling);
  }
  return context;
}

PoolingPrologue Program::prologue(const ProgramBinding& binding, int pooling) const {
  const LayerContext pool = context(binding, pooling);
  PoolingPrologue prologue{.pool = {.options = *graph_->layer(pooling).as_pooling(), .argmax = pool.saved.front()},
                           .x = pool.inputs.front()};
  if (const auto& targets = targets_[static_cast<std::size_t>(pooling)]; !targets.empty()) {
    prologue.x_gradient = gradient_view(binding, graph_->inputs(pooling).front(), targets.front().storage);
  }
  return prologue;
}

void Program::forward(const ProgramBinding& binding, const ProgramWatch& watch) const {
  for (int id = 0; id < graph_->size(); ++id) {
    const Layer& layer = graph_->layer(id);
    if (!runs(id) || fused(id) || doer(id) != id || layer.traits(mode_of(id)).view) continue;
    LayerContext call = context(binding, id);
    if (watch) watch(ProgramMoment::kBeforeForward, call);
    layer.forward(call);
    if (watch) watch(ProgramMoment::kAfterForward, call);
  }
}

TensorView Program::variable_gradient(const ProgramBinding& binding, const Variable& variable) const {
  if (variable.spec.role != VariableRole::kTrained) return {};
  return {binding.gradients + variable.offset, variable.spec.shape, DType::kF32};
}

void Program::add_gradients(const ProgramBinding& binding, int id, const Needed& needed, bool again,
                            LayerContext& context) const {
  context.output_gradient = gradient_view(binding, id, gradients_[static_cast<std::size_t>(id)]);
  std::size_t next = 0;
  for (const GradientTarget& target : targets_[static_cast<std::size_t>(id)]) {
    const int input = graph_->inputs(id)[next++];
    const bool wanted = needed[static_cast<std::size_t>(input)];
    context.input_gradients.push_back(wanted ? gradient_view(binding, input, target.storage) : TensorView{});
  }
  const auto [first, end] = layout_->of_layer(id);
  next = 0;
  for (std::size_t i = first; i < end; ++i) {
    TensorView gradient = variable_gradient(binding, layout_->variables()[i]);
    if (again && gradient.defined()) {
      gradient = place(binding, shared_[static_cast<std::size_t>(id)][next++], gradient);
    }
    context.variable_gradients.push_back(gradient);
  }
}

void Program::add_shared_gradients(const ProgramBinding& binding, int id, const LayerContext& context) const {
  const auto [first, end] = layout_->of_layer(id);
  for (std::size_t i = first; i < end; ++i) {
    const TensorView& mine = context.variable_gradients[i - first];
    if (!mine.defined()) continue;
    binding.kernels.accumulate(context.variables_stream(),
                               {mine, variable_gradient(binding, layout_->variables()[i])});
  }
}

void Program::backward(const ProgramBinding& binding, const Needed& needed,
                       const std::function<void(std::int64_t)>& filled, const ProgramWatch& watch) const {
  std::vector<bool> written(needed.size(), false);  // by the node that has the variables
  if (binding.beside != nullptr) binding.beside->follow(binding.stream);
  for (int id = graph_->size() - 1; id >= 0; --id) {
    const bool aside = binding.beside != nullptr && beside(id);
    // From here on others may use the memory of the last such layer's operands, whether this one is needed or not.
    if (aside) binding.stream.follow(*binding.beside);
    if (!needed[static_cast<std::size_t>(id)]) continue;
    const auto owner = static_cast<std::size_t>(graph_->owner(id));
    const bool again = written[owner];
    written[owner] = true;
    LayerContext call = context(binding, id);
    add_gradients(binding, id, needed, again, call);
    if (aside) {
      binding.beside->follow(binding.stream);
      call.beside = binding.beside;
    }
    const bool watched = watch && doer(id) == id;
    if (watched) watch(ProgramMoment::kBeforeBackward, call);
    if (doer(id) == id) graph_->layer(id).backward(call);
    if (watched) watch(ProgramMoment::kAfterBackward, call);
    if (again) add_shared_gradients(binding, id, call);
    std::size_t next = 0;
    for (const GradientTarget& target : targets_[static_cast<std::size_t>(id)]) {
      const std::size_t i = next++;
      if (target.add_to < 0 || !call.input_gradients[i].defined()) continue;
      binding.kernels.accumulate(
          binding.stream, {call.input_gradients[i], gradient_view(binding, graph_->inputs(id)[i], target.add_to)});
    }
    if (graph_->layer(id).has_trained_variables()) filled(layout_->filled_after(id));
  }
}

}  // namespace headrace
