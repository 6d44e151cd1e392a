#include "headrace/devices/base/launcher.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>

#include "headrace/bindings/python/module.h"

namespace headrace::python {
namespace {

// (rank, workers, both in words); None for a value that the launcher does not give.
using PlaceTuple = std::tuple<std::optional<std::int64_t>, std::optional<std::int64_t>, std::string>;

std::optional<PlaceTuple> launched() {
  const std::optional<LaunchedProcess> process = launched_process(std::getenv);
  if (!process) return std::nullopt;
  return PlaceTuple(process->rank, process->workers, process->to_string());
}

}  // namespace

void bind_launcher(nanobind::module_& module) {
  module.def("launched_process", &launched,
             "What a launcher says of this process: rank, workers, text; None for a process that runs alone.");
}

}  // namespace headrace::python
