// What Python says of a run of the trainer, as the trainer's options.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "headrace/train/fit_options.h"

namespace headrace::python {

// Reads how data are read from a dict with options of headrace.Loader. ConfigError for others, naming those that
// there are. A wait for a batch looks for signals.
LoaderOptions input_of(const nanobind::dict& options);

// "stop", "ignore" or "trace".
NanPolicy nan_policy_of(const std::string& word);

// None, "mirrored" or "mirrored_and_shifted".
std::vector<View> views_of(const std::optional<std::string>& word);

}  // namespace headrace::python
