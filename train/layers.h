// Layers: their attributes, and the base class Layer; the options of the built-in ones are in layer_options.h. A
// custom layer derives from Layer and is added by Graph::call(). Layers are const; all that changes is in the
// context, so that one object serves all replicas.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/option_visitor.h"
#include "headrace/devices/base/shape.h"
#include "headrace/devices/kernels.h"
#include "headrace/train/layer_options.h"

namespace HEADRACE_API headrace {

// Named values in order, from which a part of a model, e.g. a layer or an update rule, can be recreated.
class Attributes {
 public:
  using Value = std::variant<bool, std::int64_t, float, std::string, std::vector<std::int64_t>>;
  using Entry = std::pair<std::string, Value>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) : entries_(entries) {}

  void add(const std::string& name, Value value) { entries_.emplace_back(name, std::move(value)); }
  const std::vector<Entry>& entries() const noexcept { return entries_; }

  // Returns the value of this name. Throws ConfigError if there is none or if it has another type or is out of
  // range. number() also accepts a whole number, whole_numbers() one in place of a list.
  bool flag(const std::string& name) const;
  int whole(const std::string& name) const;
  float number(const std::string& name) const;
  std::string text(const std::string& name) const;
  Shape shape(const std::string& name) const;
  std::vector<std::int64_t> whole_numbers(const std::string& name) const;
  bool has(const std::string& name) const noexcept;

  bool operator==(const Attributes&) const = default;

 private:
  const Value& find(const std::string& name) const;

  std::vector<Entry> entries_;
};

// Write fields into attributes, and read them from there: `show` shows the fields to a visitor. An absent
// attribute leaves its field unchanged. Throws ConfigError for a value of the wrong type, for an attribute that is
// not a field, and if one of the first `required` fields is absent.
Attributes attributes_of(const std::function<void(OptionVisitor&)>& show);
void read_attributes(const Attributes& attributes, int required, const std::function<void(OptionVisitor&)>& show);

template <typename Options>
requires requires(Options options, OptionVisitor& visit) { options.each_field(visit); }
HEADRACE_HIDDEN Attributes attributes_of(Options options) {
  return attributes_of([&](OptionVisitor& visit) { options.each_field(visit); });
}

enum class Mode { kTrain, kEvaluate, kPredict };

enum class VariableRole {
  kTrained,
  kState,   // changed by the forward pass, averaged over all replicas in the world
  kFrozen,  // never changed by training
};

enum class Fill { kZeros, kConstant, kGlorotUniform, kHeUniform, kFanInUniform, kDirac, kUnitDeviation, kUniform };

struct VariableSpec {
  std::string name;  // within the layer: "weights"
  Shape shape;
  VariableRole role = VariableRole::kTrained;
  Fill fill = Fill::kZeros;
  float constant = 1;  // for kConstant; for kUniform the limit: uniform in +-constant
  std::int64_t fan_in = 1, fan_out = 1;
  bool product_weights = false;  // only used in products: forward and backward may receive a bf16 copy
};

// The properties of a step, besides the layer, that determine the sizes of tensors.
struct StepShape {
  std::int64_t rows = 1;  // of the batch, padding included
  int world_replicas = 1;
};

// Memory that a step keeps from the forward to the backward pass.
struct SavedSpec {
  Shape shape;
  DType dtype = DType::kF32;
};

struct LayerTraits {
  bool view = false;               // the output is the input in another shape: nothing to compute
  bool backward_in_place = false;  // the first input's gradient may overwrite the output's
  bool backward_reads_input = false;
  bool backward_reads_output = false;
  bool takes_epilogue = false;   // forward can apply an activation to its result
  bool undoes_epilogue = false;  // backward can start from the gradient of the activation's result
  bool takes_pooling = false;    // can max-pool its input first, in forward and backward
  bool casts = false;            // the result may be stored in another type than the input
  bool softmax = false;          // of its only input: a loss may take that input, the logits, instead
  bool f32 = false;              // takes and returns f32 whatever type activations are stored in
  bool over_replicas = false;    // needs the batches of all the world's replicas at once: LayerContext::group
  // Backward computes the gradients of variables from only the variables, the input and the output's gradient,
  // leaves those unchanged, and submits all of that to LayerContext::variables_stream(). Not together with
  // backward_in_place.
  bool variables_beside = false;
};

// Max pooling that a layer does before its own work, in place of the preceding layer: from x to the layer's input.
struct PoolingPrologue {
  kernel::MaxPool pool;
  TensorView x;
  TensorView x_gradient = {};  // backward only; undefined: not wanted
};

// All replicas that train together, in all processes.
struct ReplicaGroup {
  int world_replicas = 1;
  int replica = 0;  // this replica's number in the world
  // In stream order, replaces the f32 tensor by the sum of all replicas' tensors. All replicas must make the same
  // calls in the same order.
  std::function<void(const TensorView&)> sum;
};

// The arguments of one call. The first extent of views is the batch's rows.
struct LayerContext {
  Stream& stream;
  Kernels& kernels;
  Mode mode = Mode::kTrain;
  Precision precision = Precision::kF32;
  std::uint64_t seed = 0;
  int id = 0;  // the layer's number in its graph
  const StepScalars* scalars = nullptr;
  const ReplicaGroup* group = nullptr;  // null outside training, or if the world has one replica

  std::vector<TensorView> inputs = {};
  TensorView output = {};
  std::vector<TensorView> variables = {};  // in the order of variables()
  std::vector<TensorView> saved = {};      // in the order of saved()
  Activation epilogue = Activation::kNone;
  std::optional<PoolingPrologue> prologue = std::nullopt;

  // Backward only.
  bool undoes_epilogue = false;  // output_gradient is that of the epilogue's result
  TensorView output_gradient = {};
  std::vector<TensorView> input_gradients = {};     // undefined: not wanted
  std::vector<TensorView> variable_gradients = {};  // undefined for variables that are not trained
  Stream* beside = nullptr;                         // see variables_stream()

  // Returns the stream for the gradients of variables in backward() of a layer with LayerTraits::variables_beside.
  // It has waited for everything submitted to `stream` before the call, and `stream` does not wait for it.
  Stream& variables_stream() const noexcept { return beside != nullptr ? *beside : stream; }
};

// With the shapes of its inputs, attributes from which a layer can be recreated.
using LayerAttributes = Attributes;

class Layer {
 public:
  Layer(std::string name, Shape shape) : name_(std::move(name)), shape_(shape) {}
  virtual ~Layer() = default;

  const std::string& name() const noexcept { return name_; }
  const Shape& shape() const noexcept { return shape_; }  // of one example's result

  virtual std::string kind() const = 0;
  virtual LayerAttributes attributes() const { return {}; }
  virtual std::vector<VariableSpec> variables() const { return {}; }
  virtual std::vector<SavedSpec> saved(const StepShape&) const { return {}; }
  virtual LayerTraits traits(Mode) const { return {}; }
  // Returns whether any of variables() is trained.
  bool has_trained_variables() const;
  // Returns whether backward() can undo an epilogue on devices with these kernels, recomputing the activation's
  // input, and gains by it. Only called if no input's gradient is wanted. `activations` is their storage type.
  virtual bool recomputes(const Kernels&, DType activations, Precision) const {
    (void)activations;
    return false;
  }
  // Returns the activation that this layer is, if the preceding layer may apply it instead.
  virtual std::optional<Activation> as_epilogue() const { return std::nullopt; }
  // Returns the max pooling that this layer is, if the next layer may do it instead; argmax is the first of
  // saved().
  virtual std::optional<PoolOptions> as_pooling() const { return std::nullopt; }

  virtual void forward(LayerContext& context) const = 0;
  // Computes from output_gradient the input and variable gradients that are defined.
  virtual void backward(LayerContext& context) const = 0;

 private:
  std::string name_;
  Shape shape_;
};

// The record from which a layer can be recreated.
struct LayerRecord {
  std::string name;
  std::vector<Shape> inputs;
  LayerAttributes attributes;
};

// Makes a layer of one kind. Throws ConfigError if the record does not fit.
using LayerMaker = std::function<std::shared_ptr<const Layer>(const LayerRecord&)>;
using LayerMakers = std::map<std::string, LayerMaker>;  // by kind

// A built-in kind of layer.
struct LayerKind {
  std::string name;
  std::string doc;
  LayerMaker make;
  // Shows options with default values to the visitor; returns the attributes as the visitor set them.
  std::function<LayerAttributes(OptionVisitor& visit)> attributes;
  int required = 0;        // how many options, the first ones, have no default
  bool activates = false;  // can be followed by an activation that is its option
  bool several = false;    // takes a list of inputs
};

// Returns all of them, ordered by name.
const std::vector<LayerKind>& layer_kinds();

// Returns "layer 'conv_2' (conv)", as messages name a layer.
std::string label(const std::string& name, const std::string& kind);
// Returns the view as (rows, last extent).
TensorView as_matrix(const TensorView& view);

}  // namespace headrace
