#include "headrace/bindings/python/train/bindings.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/bindings/python/train/arrays.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/stream.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;

using ExtentList = std::vector<std::int64_t>;
// As Layer._describe() gives it: name, shape, initializer, constant, trainable, fan_in, fan_out.
using VariableTuple = std::tuple<std::string, ExtentList, std::string, float, bool, std::int64_t, std::int64_t>;
using SavedTuple = std::tuple<std::string, ExtentList>;

Shape shape_from(const ExtentList& extents) { return Shape(std::span<const std::int64_t>(extents)); }

Fill fill_of(const std::string& word) {
  return choose<Fill>("initializer", word,
                      {{"zeros", Fill::kZeros},
                       {"constant", Fill::kConstant},
                       {"glorot_uniform", Fill::kGlorotUniform},
                       {"he_uniform", Fill::kHeUniform},
                       {"fan_in_uniform", Fill::kFanInUniform},
                       {"unit_deviation", Fill::kUnitDeviation}});
}

VariableSpec spec_of(const VariableTuple& tuple) {
  const auto& [name, shape, initializer, constant, trainable, fan_in, fan_out] = tuple;
  return {.name = name,
          .shape = shape_from(shape),
          .role = trainable ? VariableRole::kTrained : VariableRole::kState,
          .fill = fill_of(initializer),
          .constant = constant,
          .fan_in = fan_in,
          .fan_out = fan_out};
}

// What the calls of a layer share.
struct LayerParts {
  PythonCallable object;
  std::string label;  // as in messages
  std::vector<std::string> variables, saved;
};

// The views of one call. They are captured with it.
struct LayerViews {
  std::shared_ptr<const LayerParts> parts;
  const StepScalars* scalars = nullptr;
  std::uint64_t seed = 0;
  int id = 0;
  bool training = false;
  std::vector<TensorView> inputs, variables, saved;
  TensorView output;
  TensorView output_gradient = {};
  std::vector<TensorView> input_gradients = {}, variable_gradients = {};
};

void fill_zeros(const TensorView& view) {
  if (view.defined()) std::memset(view.data, 0, view.bytes());
}

// The arrays of one call's real rows.
class CallArrays {
 public:
  CallArrays(const LayerViews& views, LentArrays& lent) : views_(views), lent_(lent) {}

  nb::object rows(const TensorView& view, bool writable) {
    if (!view.defined()) return nb::none();
    return lent_.array(first_rows_of(view, views_.scalars->rows), writable);
  }
  nb::list rows(const std::vector<TensorView>& views, bool writable) {
    nb::list arrays;
    for (const TensorView& view : views) arrays.append(rows(view, writable));
    return arrays;
  }
  nb::dict saved(bool writable) {
    nb::dict arrays;
    for (std::size_t i = 0; i < views_.saved.size(); ++i) {
      arrays[views_.parts->saved[i].c_str()] = rows(views_.saved[i], writable);
    }
    return arrays;
  }
  nb::dict variables(const std::vector<TensorView>& views, bool writable) {
    nb::dict arrays;
    for (std::size_t i = 0; i < views.size(); ++i) {
      nb::object array = views[i].defined() ? lent_.array(views[i], writable) : nb::none();
      arrays[views_.parts->variables[i].c_str()] = std::move(array);
    }
    return arrays;
  }
  nb::tuple numbers() const {
    return nb::make_tuple(views_.training, views_.seed, views_.id, views_.scalars->step,
                          views_.scalars->first_row);
  }

 private:
  const LayerViews& views_;
  LentArrays& lent_;
};

// Calls body(layer, arrays); refuses arrays that are kept. `method`: "forward()".
template <typename Body>
void call_layer(const LayerViews& views, const char* method, const Body& body) {
  if (views.scalars->rows == 0) return;
  const std::string where = fmt::format("{}, {}", views.parts->label, method);
  views.parts->object.call_in_run(where, [&](nb::handle layer) {
    LentArrays lent;
    CallArrays arrays(views, lent);
    body(layer, arrays);
    if (lent.are_held()) layer.attr("_refuse_kept")(method);
  });
}

void run_forward(const LayerViews& views) {
  fill_zeros(views.output);
  call_layer(views, "forward()", [&](nb::handle layer, CallArrays& arrays) {
    layer.attr("_run_forward")(arrays.rows(views.inputs, false), arrays.rows(views.output, true),
                               arrays.variables(views.variables, views.training), arrays.saved(true),
                               arrays.numbers());
  });
}

void run_backward(const LayerViews& views) {
  for (const TensorView& gradient : views.input_gradients) fill_zeros(gradient);
  for (const TensorView& gradient : views.variable_gradients) fill_zeros(gradient);
  call_layer(views, "backward()", [&](nb::handle layer, CallArrays& arrays) {
    layer.attr("_run_backward")(arrays.rows(views.inputs, false), arrays.rows(views.output, false),
                                arrays.rows(views.output_gradient, false),
                                arrays.rows(views.input_gradients, true), arrays.variables(views.variables, false),
                                arrays.variables(views.variable_gradients, true), arrays.saved(true),
                                arrays.numbers());
  });
}

class PythonLayer final : public Layer {
 public:
  PythonLayer(const std::string& name, const Shape& shape, std::string kind, std::string config,
              std::vector<VariableSpec> variables, std::vector<SavedSpec> saved,
              std::shared_ptr<const LayerParts> parts)
      : Layer(name, shape),
        kind_(std::move(kind)),
        config_(std::move(config)),
        variables_(std::move(variables)),
        saved_(std::move(saved)),
        parts_(std::move(parts)) {}

  std::string kind() const override { return kind_; }
  LayerAttributes attributes() const override { return {{"config", config_}}; }
  std::vector<VariableSpec> variables() const override { return variables_; }
  std::vector<SavedSpec> saved(const StepShape& step) const override {
    std::vector<SavedSpec> of_batch = saved_;
    for (SavedSpec& spec : of_batch) spec.shape = spec.shape.with_front(step.rows);
    return of_batch;
  }
  LayerTraits traits(Mode) const override {
    return {.backward_reads_input = true, .backward_reads_output = true, .f32 = true};
  }

  void forward(LayerContext& context) const override {
    context.stream.call([views = views_of(context)] { run_forward(views); });
  }
  void backward(LayerContext& context) const override {
    LayerViews views = views_of(context);
    views.output_gradient = context.output_gradient;
    views.input_gradients = context.input_gradients;
    views.variable_gradients = context.variable_gradients;
    context.stream.call([views = std::move(views)] { run_backward(views); });
  }

 private:
  LayerViews views_of(const LayerContext& context) const {
    return {.parts = parts_,
            .scalars = context.scalars,
            .seed = context.seed,
            .id = context.id,
            .training = context.mode == Mode::kTrain,
            .inputs = context.inputs,
            .variables = context.variables,
            .saved = context.saved,
            .output = context.output};
  }

  std::string kind_, config_;
  std::vector<VariableSpec> variables_;
  std::vector<SavedSpec> saved_;  // of one example
  std::shared_ptr<const LayerParts> parts_;
};

void require_host_memory(const std::string& label, const DeviceGroup& devices) {
  for (int r = 0; r < devices.size(); ++r) {
    const DeviceInfo& info = devices[r].info();
    if (info.host_memory) continue;
    throw ConfigError(fmt::format("{} is written in Python, which computes in the host's memory; {} has its own",
                                  label, info.name),
                      "train it on CPUs, as Strategy('cpu:4'), or compose it of the graph's layers; losses and "
                      "metrics in Python work on GPUs, too");
  }
}

}  // namespace

std::shared_ptr<const Layer> python_layer(const nb::object& layer, const std::string& name,
                                          const std::vector<Shape>& inputs, const DeviceGroup& devices) {
  nb::list shapes;
  for (const Shape& shape : inputs) shapes.append(tuple_of(shape));
  const auto [kind, config, extents, variables, saved] = nb::cast<
      std::tuple<std::string, std::string, ExtentList, std::vector<VariableTuple>, std::vector<SavedTuple>>>(
      layer.attr("_describe")(shapes));
  require_host_memory(label(name, kind), devices);
  std::vector<VariableSpec> specs;
  std::vector<SavedSpec> kept;
  std::vector<std::string> variable_names, saved_names;
  for (const VariableTuple& each : variables) {
    specs.push_back(spec_of(each));
    variable_names.push_back(specs.back().name);
  }
  for (const auto& [saved_name, shape] : saved) {
    kept.push_back({.shape = shape_from(shape)});
    saved_names.push_back(saved_name);
  }
  auto parts = std::make_shared<const LayerParts>(LayerParts{.object = PythonCallable(layer),
                                                             .label = label(name, kind),
                                                             .variables = std::move(variable_names),
                                                             .saved = std::move(saved_names)});
  return std::make_shared<PythonLayer>(name, shape_from(extents), kind, config, std::move(specs), std::move(kept),
                                       std::move(parts));
}

LayerMakers python_layer_makers(const nb::dict& factories, const DeviceGroup& devices) {
  LayerMakers makers;
  for (const auto [kind, factory] : factories) {
    makers[nb::cast<std::string>(kind)] = [made = share(nb::borrow(factory)),
                                           &devices](const LayerRecord& record) {
      const std::string config = record.attributes.text("config");
      const nb::gil_scoped_acquire lock;
      return python_layer(object_of(made)(config), record.name, record.inputs, devices);
    };
  }
  return makers;
}

}  // namespace headrace::python
