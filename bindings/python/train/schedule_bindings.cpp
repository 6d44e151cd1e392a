#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>

#include "headrace/bindings/python/train/bindings.h"
#include "headrace/train/schedule.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

DecayOptions decay_of(float peak, std::uint64_t total_steps, std::uint64_t warmup_steps, float floor) {
  return {.peak = peak, .floor = floor, .warmup_steps = warmup_steps, .total_steps = total_steps};
}

void bind_decays(nb::module_& module) {
  module.def(
      "linear_decay",
      [](float peak, std::uint64_t total_steps, std::uint64_t warmup_steps, float floor) {
        return Schedule::linear_decay(decay_of(peak, total_steps, warmup_steps, floor));
      },
      "peak"_a, "total_steps"_a, nb::kw_only(), "warmup_steps"_a = 0, "floor"_a = 0.0F,
      "Linear from 0 to `peak` over the warm-up, then down to `floor` at `total_steps`.");
  module.def(
      "cosine_decay",
      [](float peak, std::uint64_t total_steps, std::uint64_t warmup_steps, float floor) {
        return Schedule::cosine_decay(decay_of(peak, total_steps, warmup_steps, floor));
      },
      "peak"_a, "total_steps"_a, nb::kw_only(), "warmup_steps"_a = 0, "floor"_a = 0.0F);
  module.def(
      "exponential_decay",
      [](float initial, float factor, std::uint64_t every_steps, bool staircase) {
        return Schedule::exponential_decay(
            {.initial = initial, .factor = factor, .every_steps = every_steps, .staircase = staircase});
      },
      "initial"_a, "factor"_a, "every_steps"_a, nb::kw_only(), "staircase"_a = false,
      "initial * factor ** (step / every_steps).");
  module.def(
      "piecewise",
      [](std::vector<float> rates, std::vector<std::uint64_t> boundaries) {
        return Schedule::piecewise({.rates = std::move(rates), .boundaries = std::move(boundaries)});
      },
      "rates"_a, "boundaries"_a, "rates[0] up to the step boundaries[0], rates[1] from there on, and so forth.");
}

void bind_compositions(nb::module_& module) {
  module.def(
      "one_cycle",
      [](float peak, std::uint64_t total_steps, float warmup_share, float initial_divisor, float final_divisor,
         bool linear) {
        return Schedule::one_cycle({.peak = peak,
                                    .total_steps = total_steps,
                                    .warmup_share = warmup_share,
                                    .initial_divisor = initial_divisor,
                                    .final_divisor = final_divisor,
                                    .linear = linear});
      },
      "peak"_a, "total_steps"_a, nb::kw_only(), "warmup_share"_a = 0.3F, "initial_divisor"_a = 25.0F,
      "final_divisor"_a = 1e4F, "linear"_a = false, "As PyTorch's OneCycleLR.");
  module.def("warm_up", &Schedule::warm_up, "steps"_a, "then"_a,
             "Linear from 0 to the first rate of `then`; then `then`, counted from its own 0.");
  module.def("chained", &Schedule::chained, "parts"_a, "boundaries"_a,
             "parts[0] up to the step boundaries[0], and so forth, each counted from its own 0.");
}

}  // namespace

void bind_schedules(nb::module_& module) {
  nb::class_<Schedule>(module, "Schedule", "The learning rate as a function of the optimizer's step, from 0.")
      .def(nb::init<float>(), "constant"_a)
      .def("__call__", &Schedule::at, "step"_a)
      .def(
          "__eq__", [](const Schedule& a, const Schedule& b) { return a == b; }, nb::is_operator());
  nb::implicitly_convertible<float, Schedule>();
  bind_decays(module);
  bind_compositions(module);
}

}  // namespace headrace::python
