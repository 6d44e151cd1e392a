#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "headrace/bindings/python/options.h"
#include "headrace/bindings/python/train/bindings.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/optimizers.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// The options of a rule, and what every optimizer can do besides.
template <typename Rule>
struct OptimizerArguments {
  Rule rule = {};
  GradientClip clip = {};
};

template <typename Rule>
void show(OptimizerArguments<Rule>& arguments, OptionVisitor& visit) {
  show(arguments.rule, visit);
  visit("clip_norm", arguments.clip.max_norm, "The largest norm of all gradients together; 0: no limit.");
  visit("clip_value", arguments.clip.max_value, "The largest magnitude of an element; 0: no limit.");
}

template <typename Rule>
void bind_optimizer(nb::module_& module, const std::string& name, const Optimizer& usual, const char* doc) {
  const OptimizerArguments<Rule> defaults{.rule = std::get<Rule>(usual.rule)};
  const std::vector<ListedOption> options = list_options(defaults);
  const std::string signature = fmt::format("def {}(learning_rate: Schedule | float = {}, {}) -> Optimizer", name,
                                            usual.learning_rate.at(0), parameters_text(options));
  module.def(
      name.c_str(),
      [usual, defaults, whose = name + "()"](nb::handle learning_rate, const nb::kwargs& given) {
        const auto arguments = read_options(given, whose, defaults);
        Optimizer optimizer = usual;
        optimizer.rule = arguments.rule;
        optimizer.learning_rate = schedule_of(learning_rate);
        optimizer.clip = arguments.clip;
        check_optimizer(optimizer);
        return optimizer;
      },
      "learning_rate"_a = usual.learning_rate, "options"_a, nb::sig(signature.c_str()),
      parameters_doc(doc, options).c_str());
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
            check_optimizer(optimizer);
            return optimizer;
          },
          nb::kw_only(), "every"_a = 5, "share"_a = 0.5F,
          "The same with slow weights: after each `every` updates slow += share * (weights - slow).")
      .def(
          "averaged",
          [](Optimizer optimizer, float decay, std::uint64_t warmup) {
            optimizer.average = WeightAverage{.decay = decay, .warmup = warmup};
            check_optimizer(optimizer);
            return optimizer;
          },
          nb::kw_only(), "decay"_a = 0.999F, "warmup"_a = 0,
          "The same with an average of the weights, for fit(validate_averaged=True) and "
          "evaluate(averaged_weights=True).")
      .def("to_json", [](const Optimizer& optimizer) { return to_json(optimizer); })
      .def_static(
          "from_json", [](std::string_view text) { return optimizer_from_json(text); }, "text"_a)
      .def(
          "__eq__", [](const Optimizer& a, const Optimizer& b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const Optimizer& optimizer) { return "Optimizer(" + to_json(optimizer) + ")"; });
}

}  // namespace

void bind_optimizers(nb::module_& module) {
  bind_rules(module);
  bind_optimizer_class(module);
  bind_optimizer<AdamOptions>(module, "adam", adam(),
                              "Keras's default values; the epsilon is added as by PyTorch, to the root of the "
                              "corrected second moment.");
  bind_optimizer<AdamOptions>(module, "adamw", adamw(), "Adam with decoupled weight decay.");
  bind_optimizer<SgdOptions>(module, "sgd", sgd(), "Gradient descent, with momentum where it is not 0.");
  bind_optimizer<MuonOptions>(
      module, "muon", muon(),
      "PyTorch's rule and defaults, for weight matrices and convolutions; biases need a group of another rule.");
}

}  // namespace headrace::python
