#include "headrace/bindings/python/train/bindings.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "headrace/bindings/python/train/arrays.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/optimizers.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

constexpr const char* kOptions = "options";  // the attribute with a rule's options as JSON

nb::object lend(LentArrays& lent, const HostUpdate& update, std::span<const float> values, bool writable) {
  const TensorView view{const_cast<float*>(values.data()), update.shape, DType::kF32};
  return lent.array(view, writable);
}

// function(parameters, gradients, state, learning_rate, step) changes the first and the third.
std::function<void(const HostUpdate&)> caller_of(const std::string& name, nb::object function) {
  const auto python = std::make_shared<const PythonCallable>(std::move(function));
  return [python, where = "update rule '" + name + "'"](const HostUpdate& update) {
    call_with_arrays(*python, where, [&](nb::handle call, LentArrays& lent) {
      nb::list state;
      for (const std::span<float> values : update.state) state.append(lend(lent, update, values, true));
      call(lend(lent, update, update.parameters, true), lend(lent, update, update.gradients, false), state,
           update.learning_rate, update.step);
    });
  };
}

Optimizer python_optimizer(const std::string& name, const std::vector<std::string>& state, nb::object function,
                           const std::string& options, bool whole_variables, nb::handle learning_rate,
                           float clip_norm, float clip_value) {
  const UpdateScope scope = whole_variables ? UpdateScope::kVariable : UpdateScope::kElements;
  Optimizer optimizer;
  optimizer.rule =
      CustomRule(host_rule(name, state, caller_of(name, std::move(function)), {{kOptions, options}}, scope));
  optimizer.learning_rate = schedule_of(learning_rate);
  optimizer.clip = {.max_norm = clip_norm, .max_value = clip_value};
  check_optimizer(optimizer);
  return optimizer;
}

UpdateMaker maker_of(const std::string& name, const Optimizer& optimizer) {
  const CustomRule* own = std::get_if<CustomRule>(&optimizer.rule);
  if (own == nullptr || own->function == nullptr) {
    throw ConfigError(fmt::format("custom_objects['{}'] is an optimizer of this library", name),
                      "only a custom_optimizer() has to be given");
  }
  return [name, function = own->function](const Attributes& saved) {
    if (saved == function->attributes()) return function;
    throw ConfigError(fmt::format("custom_objects['{}'] has the options {}, the file {}", name,
                                  function->attributes().text(kOptions), saved.text(kOptions)),
                      "give custom_optimizer() the options of the file");
  };
}

}  // namespace

UpdateMakers python_rule_makers(const nb::dict& optimizers) {
  UpdateMakers makers;
  for (const auto& [key, value] : optimizers) {
    const auto name = nb::cast<std::string>(key);
    makers[name] = maker_of(name, nb::cast<Optimizer>(value));
  }
  return makers;
}

void bind_python_rules(nb::module_& module) {
  module.def(
      "python_optimizer", &python_optimizer, "name"_a, "state"_a, "function"_a, "options"_a, "whole_variables"_a,
      "learning_rate"_a, "clip_norm"_a, "clip_value"_a,
      nb::sig("def python_optimizer(name: str, state: list[str], function: object, options: str, "
              "whole_variables: bool, learning_rate: Schedule | float, clip_norm: float, clip_value: float) "
              "-> Optimizer"));
}

}  // namespace headrace::python
