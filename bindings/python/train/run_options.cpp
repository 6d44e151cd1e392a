#include "headrace/bindings/python/train/run_options.h"

#include "headrace/bindings/python/names.h"
#include "headrace/bindings/python/options.h"
#include "headrace/bindings/python/train/interrupts.h"

namespace headrace::python {

LoaderOptions input_of(const nanobind::dict& options) {
  auto input = read_options<LoaderOptions>(options, "a run of the trainer");
  input.while_waiting = InterruptWatch::poll;
  return input;
}

std::vector<View> views_of(const std::optional<std::string>& word) {
  if (!word) return {};
  return choose<std::vector<View> (*)()>(
      "views", *word,
      {{"mirrored", mirrored_views}, {"mirrored_and_shifted", [] { return mirrored_and_shifted_views(); }}})();
}

}  // namespace headrace::python
