#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "headrace/bindings/python/train/bindings.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/optimizers.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// What every optimizer can do besides its rule.
Optimizer with_clip(Optimizer optimizer, float clip_norm, float clip_value) {
  optimizer.clip = {.max_norm = clip_norm, .max_value = clip_value};
  return optimizer;
}

Optimizer make_adam(const Schedule& learning_rate, float beta1, float beta2, float epsilon, float weight_decay,
                    float clip_norm, float clip_value) {
  return with_clip(
      adam(learning_rate, {.beta1 = beta1, .beta2 = beta2, .epsilon = epsilon, .weight_decay = weight_decay}),
      clip_norm, clip_value);
}

Optimizer make_sgd(const Schedule& learning_rate, float momentum, bool nesterov, float weight_decay,
                   float clip_norm, float clip_value) {
  return with_clip(sgd(learning_rate, {.momentum = momentum, .weight_decay = weight_decay, .nesterov = nesterov}),
                   clip_norm, clip_value);
}

Optimizer make_muon(const Schedule& learning_rate, float momentum, float weight_decay, int iterations,
                    float clip_norm, float clip_value) {
  return with_clip(
      muon(learning_rate, {.momentum = momentum, .iterations = iterations, .weight_decay = weight_decay}),
      clip_norm, clip_value);
}

Optimizer with_group(Optimizer optimizer, const VariableRule& takes, const Optimizer& by) {
  if (!by.groups.empty() || by.clip.on() || by.lookahead || by.average) {
    throw ConfigError(
        "a group has a rule and a learning rate of its own, and nothing else",
        "say clip_norm, clip_value, lookahead(), averaged() and further groups of the optimizer itself");
  }
  optimizer.groups.push_back({.takes = takes, .rule = by.rule, .learning_rate = by.learning_rate});
  return optimizer;
}

void bind_rules(nb::module_& module) {
  nb::class_<VariableRule>(module, "VariableRule", "Chooses variables; combined with &, | and ~.")
      .def(
          "__and__", [](const VariableRule& a, const VariableRule& b) { return a && b; }, nb::is_operator())
      .def(
          "__or__", [](const VariableRule& a, const VariableRule& b) { return a || b; }, nb::is_operator())
      .def("__invert__", [](const VariableRule& rule) { return !rule; })
      .def("__repr__", &VariableRule::to_string);
  module.def("named", &VariableRule::named, "pattern"_a,
             "Variables whose name fits: '*/bias'. * stands for any characters.");
  module.def("of_kind", &VariableRule::of_kind, "pattern"_a, "Of layers of this kind: 'conv'.");
  module.def("of_rank", &VariableRule::of_rank, "rank"_a, "Of so many axes: biases have 1.");
}

void bind_optimizer_class(nb::module_& module) {
  nb::class_<Optimizer>(module, "Optimizer", "How gradients change parameters: a value that describes.")
      .def_prop_ro("name", &Optimizer::name)
      .def_prop_ro("learning_rate", [](const Optimizer& optimizer) { return optimizer.learning_rate; })
      .def("group", &with_group, "takes"_a, "by"_a,
           "The same, but variables that the rule takes are updated by another optimizer. Groups are asked in "
           "order.")
      .def(
          "lookahead",
          [](Optimizer optimizer, std::uint64_t every, float share) {
            optimizer.lookahead = Lookahead{.every = every, .share = share};
            return optimizer;
          },
          nb::kw_only(), "every"_a = 5, "share"_a = 0.5F,
          "The same with slow weights: after each `every` updates slow += share * (weights - slow).")
      .def(
          "averaged",
          [](Optimizer optimizer, float decay, std::uint64_t warmup) {
            optimizer.average = WeightAverage{.decay = decay, .warmup = warmup};
            return optimizer;
          },
          nb::kw_only(), "decay"_a = 0.999F, "warmup"_a = 0,
          "The same with an average of the weights, for fit(validate_averaged=True) and "
          "evaluate(averaged_weights=True).")
      .def("to_json", [](const Optimizer& optimizer) { return to_json(optimizer); })
      .def_static(
          "from_json", [](std::string_view text) { return optimizer_from_json(text); }, "text"_a)
      .def(
          "__eq__", [](const Optimizer& a, const Optimizer& b) { return a == b; }, nb::is_operator())
      .def("__repr__", [](const Optimizer& optimizer) { return "Optimizer(" + to_json(optimizer) + ")"; });
}

}  // namespace

void bind_optimizers(nb::module_& module) {
  bind_rules(module);
  bind_optimizer_class(module);
  module.def("adam", &make_adam, "learning_rate"_a = Schedule(1e-3F), nb::kw_only(), "beta1"_a = 0.9F,
             "beta2"_a = 0.999F, "epsilon"_a = 1e-7F, "weight_decay"_a = 0.0F, "clip_norm"_a = 0.0F,
             "clip_value"_a = 0.0F, "Keras's defaults. With weight_decay it is AdamW. clip 0: none.");
  module.def("adamw", &make_adam, "learning_rate"_a = Schedule(1e-3F), nb::kw_only(), "beta1"_a = 0.9F,
             "beta2"_a = 0.999F, "epsilon"_a = 1e-7F, "weight_decay"_a = 1e-2F, "clip_norm"_a = 0.0F,
             "clip_value"_a = 0.0F, "Adam with decoupled weight decay.");
  module.def("sgd", &make_sgd, "learning_rate"_a = Schedule(1e-2F), nb::kw_only(), "momentum"_a = 0.0F,
             "nesterov"_a = false, "weight_decay"_a = 0.0F, "clip_norm"_a = 0.0F, "clip_value"_a = 0.0F);
  module.def("muon", &make_muon, "learning_rate"_a = Schedule(0.02F), nb::kw_only(), "momentum"_a = 0.6F,
             "weight_decay"_a = 0.0F, "iterations"_a = 3, "clip_norm"_a = 0.0F, "clip_value"_a = 0.0F,
             "For weight matrices and convolutions; biases need a group of another rule.");
}

}  // namespace headrace::python
