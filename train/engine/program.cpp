#include "headrace/train/engine/program.h"

#include <algorithm>

#include "headrace/train/engine/value_types.h"

namespace headrace {

// The clock of the plan: layer i runs forward at time i and backward at time 2n - i; the loss is at time n.
Program::Program(const Graph& graph, const VariableLayout& layout, const ProgramOptions& options)
    : graph_(&graph), layout_(&layout), options_(options), result_(result_of(graph, options.leaves_out_softmax)) {
  const auto layers = static_cast<std::size_t>(graph.size());
  epilogue_of_.assign(layers, -1);
  producer_of_.assign(layers, -1);
  pooling_of_.assign(layers, -1);
  pooled_by_.assign(layers, -1);
  values_.assign(layers, -1);
  gradients_.assign(layers, -1);
  saved_.resize(layers);
  targets_.resize(layers);
  types_ = value_types(graph, options.mode, result_, options.activations);
  find_epilogues();
  if (options.mode == Mode::kTrain) find_poolings();
  plan_forward();
  if (options.mode == Mode::kTrain) plan_backward();
  memory_.place();
}

void Program::find_epilogues() {
  for (int id = 0; id <= result_; ++id) {
    const std::optional<Activation> activation = graph_->layer(id).as_epilogue();
    if (!activation) continue;
    const int before = graph_->inputs(id).front();
    const LayerTraits producer = graph_->layer(before).traits(options_.mode);
    const bool reads_input = graph_->layer(id).traits(options_.mode).backward_reads_input;
    if (options_.mode == Mode::kTrain && reads_input && !producer.undoes_epilogue) continue;
    if (!producer.takes_epilogue || graph_->consumers(before).size() != 1) continue;
    epilogue_of_[static_cast<std::size_t>(before)] = id;
    producer_of_[static_cast<std::size_t>(id)] = before;
  }
}

void Program::find_poolings() {
  for (int id = 0; id <= result_; ++id) {
    if (!graph_->layer(id).traits(options_.mode).takes_pooling) continue;
    const int before = graph_->inputs(id).front();
    if (!graph_->layer(before).as_pooling() || graph_->consumers(before).size() != 1) continue;
    pooling_of_[static_cast<std::size_t>(id)] = before;
    pooled_by_[static_cast<std::size_t>(before)] = id;
  }
}

int Program::doer(int id) const {
  if (const int pooled_by = pooled_by_[static_cast<std::size_t>(id)]; pooled_by >= 0) return pooled_by;
  const int producer = producer_of_[static_cast<std::size_t>(id)];
  return producer >= 0 && graph_->layer(producer).traits(options_.mode).undoes_epilogue ? producer : id;
}

void Program::plan_forward() {
  const bool training = options_.mode == Mode::kTrain;
  for (int id = 0; id <= result_; ++id) {
    const Layer& layer = graph_->layer(id);
    const LayerTraits traits = layer.traits(options_.mode);
    const bool shares = traits.view || fused(id);
    // An activation that its producer does is never read backward; a pooling reads its input when its doer runs.
    const bool keeps = training && !(fused(id) && doer(id) != id);
    const int runs = std::max(id, doer(id));
    // Inputs are written before the first layer runs.
    const int born = layer.kind() == "input" ? 0 : id;
    value_storage(id) = shares ? value_storage(graph_->inputs(id).front()) : memory_.add(stored(id).bytes(), born);
    memory_.keep(value_storage(id), keeps && traits.backward_reads_output ? time_of_backward(id) : id);
    for (const int input : graph_->inputs(id)) {
      memory_.keep(value_storage(input), keeps && traits.backward_reads_input ? time_of_backward(id) : runs);
    }
    for (const SavedSpec& spec : layer.saved(options_.rows)) {
      const int storage = memory_.add(static_cast<std::size_t>(spec.shape.elements()) * size_of(spec.dtype), id);
      memory_.keep(storage, training ? time_of_backward(id) : id);
      saved_[static_cast<std::size_t>(id)].push_back(storage);
    }
  }
  memory_.keep(value_storage(result_), 2 * graph_->size() + 1);  // read by the loss, or copied out afterwards
}

Program::Needed Program::needed(const std::function<bool(const Variable&)>& learns) const {
  Needed needed(static_cast<std::size_t>(graph_->size()), false);
  for (int id = 0; id <= result_; ++id) {
    const auto [first, end] = layout_->of_layer(id);
    bool wanted = false;
    for (std::size_t i = first; i < end; ++i) {
      const Variable& variable = layout_->variables()[i];
      wanted = wanted || (variable.spec.role == VariableRole::kTrained && learns(variable));
    }
    for (const int input : graph_->inputs(id)) wanted = wanted || needed[static_cast<std::size_t>(input)];
    needed[static_cast<std::size_t>(id)] = wanted;
  }
  return needed;
}

void Program::plan_backward() {
  wants_gradient_ = needed([](const Variable&) { return true; });
  gradient_storage(result_) = memory_.add(stored(result_).bytes(), graph_->size());
  for (int id = result_; id >= 0; --id) {
    if (wants_gradient_[static_cast<std::size_t>(id)]) plan_backward_of(id);
  }
}

void Program::plan_backward_of(int id) {
  const int time = time_of_backward(id);
  memory_.keep(gradient_storage(id), time);
  bool in_place = graph_->layer(id).traits(options_.mode).backward_in_place;
  for (const int input : graph_->inputs(id)) {
    targets_[static_cast<std::size_t>(id)].push_back(target(id, input, in_place, time));
    in_place = false;
  }
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

TensorView Program::result_gradient(const ProgramBinding& binding) const {
  return gradient_view(binding, result_, gradients_[static_cast<std::size_t>(result_)]);
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
                       .mode = options_.mode,
                       .precision = options_.precision,
                       .seed = options_.seed,
                       .id = id,
                       .scalars = binding.scalars};
  for (const int input : graph_->inputs(id)) context.inputs.push_back(value(binding, input));
  context.output = value(binding, id);
  const auto [first, end] = layout_->of_layer(id);
  for (std::size_t i = first; i < end; ++i) {
    context.variables.push_back(variable_view(binding, layout_->variables()[i]));
  }
  std::size_t next = 0;
  for (const SavedSpec& spec : graph_->layer(id).saved(options_.rows)) {
    const int storage = saved_[static_cast<std::size_t>(id)][next++];
    context.saved.push_back(place(binding, storage, {nullptr, spec.shape, spec.dtype}));
  }
  if (const int epilogue = epilogue_of_[static_cast<std::size_t>(id)]; epilogue >= 0) {
    context.epilogue = *graph_->layer(epilogue).as_epilogue();
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
  for (int id = 0; id <= result_; ++id) {
    const Layer& layer = graph_->layer(id);
    if (fused(id) || doer(id) != id || layer.traits(options_.mode).view) continue;
    LayerContext call = context(binding, id);
    if (watch) watch(ProgramMoment::kBeforeForward, call);
    layer.forward(call);
    if (watch) watch(ProgramMoment::kAfterForward, call);
  }
}

void Program::add_gradients(const ProgramBinding& binding, int id, const Needed& needed,
                            LayerContext& context) const {
  context.output_gradient = gradient_view(binding, id, gradients_[static_cast<std::size_t>(id)]);
  std::size_t next = 0;
  for (const GradientTarget& target : targets_[static_cast<std::size_t>(id)]) {
    const int input = graph_->inputs(id)[next++];
    const bool wanted = needed[static_cast<std::size_t>(input)];
    context.input_gradients.push_back(wanted ? gradient_view(binding, input, target.storage) : TensorView{});
  }
  const auto [first, end] = layout_->of_layer(id);
  for (std::size_t i = first; i < end; ++i) {
    const Variable& variable = layout_->variables()[i];
    TensorView gradient;
    if (variable.spec.role == VariableRole::kTrained) {
      gradient = {binding.gradients + variable.offset, variable.spec.shape, DType::kF32};
    }
    context.variable_gradients.push_back(gradient);
  }
}

void Program::backward(const ProgramBinding& binding, const Needed& needed,
                       const std::function<void(std::int64_t)>& filled, const ProgramWatch& watch) const {
  for (int id = result_; id >= 0; --id) {
    if (!needed[static_cast<std::size_t>(id)]) continue;
    LayerContext call = context(binding, id);
    add_gradients(binding, id, needed, call);
    const bool watched = watch && doer(id) == id;
    if (watched) watch(ProgramMoment::kBeforeBackward, call);
    if (doer(id) == id) graph_->layer(id).backward(call);
    if (watched) watch(ProgramMoment::kAfterBackward, call);
    std::size_t next = 0;
    for (const GradientTarget& target : targets_[static_cast<std::size_t>(id)]) {
      const std::size_t i = next++;
      if (target.add_to < 0 || !call.input_gradients[i].defined()) continue;
      binding.kernels.accumulate(binding.stream, call.input_gradients[i],
                                 gradient_view(binding, graph_->inputs(id)[i], target.add_to));
    }
    if (graph_->layer(id).has_trained_variables()) filled(layout_->filled_after(id));
  }
}

}  // namespace headrace
