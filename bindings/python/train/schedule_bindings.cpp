#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "headrace/bindings/python/options.h"
#include "headrace/bindings/python/train/bindings.h"
#include "headrace/train/optimizers.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// A form with its options as arguments; those that have to be given may stand by their place.
template <typename Options, typename Make>
void bind_form(nb::module_& module, const std::string& name, const std::vector<std::string>& required,
               const Make& make, const char* doc) {
  const std::vector<ListedOption> options = list_options(Options());
  const std::string signature =
      fmt::format("def {}({}) -> Schedule", name, parameters_text(options, {.names = required}));
  const auto call = [=, whose = name + "()"](const nb::args& placed, const nb::kwargs& named) {
    return make(read_options<Options>(given_options(placed, named, {.names = required}, signature), whose));
  };
  module.def(name.c_str(), call, "placed"_a, "named"_a, nb::sig(signature.c_str()),
             parameters_doc(doc, options).c_str());
}

void bind_forms(nb::module_& module) {
  bind_form<DecayOptions>(module, "linear_decay", {"peak", "total_steps"}, &Schedule::linear_decay,
                          "Over the warm-up (step + 1) / warmup_steps of `peak`, so that no step has a rate of 0; "
                          "then down to `floor` at `total_steps`, linearly.");
  bind_form<DecayOptions>(module, "cosine_decay", {"peak", "total_steps"}, &Schedule::cosine_decay,
                          "linear_decay() along half a cosine.");
  bind_form<ExponentialOptions>(module, "exponential_decay", {"initial", "factor", "every_steps"},
                                &Schedule::exponential_decay, "initial * factor ** (step / every_steps).");
  bind_form<PiecewiseOptions>(module, "piecewise", {"rates", "boundaries"}, &Schedule::piecewise,
                              "rates[0] up to the step boundaries[0], rates[1] from there on, and so forth.");
  bind_form<OneCycleOptions>(module, "one_cycle", {"peak", "total_steps"}, &Schedule::one_cycle,
                             "As PyTorch's OneCycleLR.");
}

}  // namespace

// No implicit conversion, in which nanobind would turn a refused number into a wrong type.
Schedule schedule_of(nb::handle value) {
  if (nb::isinstance<Schedule>(value)) return nb::cast<Schedule>(value);
  if (PyNumber_Check(value.ptr()) == 0) {
    throw nb::type_error("a learning rate is a number or one of headrace.train's schedules");
  }
  return {nb::cast<float>(nb::float_(value))};
}

void bind_schedules(nb::module_& module) {
  nb::class_<Schedule>(module, "Schedule", "The learning rate as a function of the optimizer's step, from 0.")
      .def(nb::init<float>(), "constant"_a)
      .def("__call__", &Schedule::at, "step"_a)
      .def(
          "__eq__", [](const Schedule& a, const Schedule& b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"));
  bind_forms(module);
  module.def(
      "warm_up", [](std::uint64_t steps, nb::handle then) { return Schedule::warm_up(steps, schedule_of(then)); },
      "steps"_a, "then"_a, nb::sig("def warm_up(steps: int, then: Schedule | float) -> Schedule"),
      "(step + 1) / steps of the first rate of `then`, from 1 / steps of it at step 0 to all of it at step "
      "steps - 1; then `then`, counted from its own 0.");
  module.def(
      "chained",
      [](const nb::sequence& parts, std::vector<std::uint64_t> boundaries) {
        std::vector<Schedule> schedules;
        for (const nb::handle part : parts) schedules.push_back(schedule_of(part));
        return Schedule::chained(std::move(schedules), std::move(boundaries));
      },
      "parts"_a, "boundaries"_a,
      nb::sig("def chained(parts: collections.abc.Sequence[Schedule | float], boundaries: "
              "collections.abc.Sequence[int]) -> Schedule"),
      "parts[0] up to the step boundaries[0], and so forth, each counted from its own 0.");
}

}  // namespace headrace::python
