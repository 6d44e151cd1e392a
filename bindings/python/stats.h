#pragma once

#include <nanobind/nanobind.h>

namespace headrace::python {

// LoaderStats, what they mean, and the tables that `explain` shows.
void bind_stats(nanobind::module_& module);

}  // namespace headrace::python
