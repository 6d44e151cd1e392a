// Converts Python's options of a run to the trainer's.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "headrace/train/fit_options.h"

namespace headrace::python {

// Reads input options from a dict with options of headrace.Loader. Throws ConfigError for others, naming the valid
// ones. A wait for a batch checks for signals.
LoaderOptions input_of(const nanobind::dict& options);

// Parses None, "mirrored" or "mirrored_and_shifted".
std::vector<View> views_of(const std::optional<std::string>& word);

}  // namespace headrace::python
