// Update rules that are Python functions: headrace/_update_rules.py prepares them.
#pragma once

#include <nanobind/nanobind.h>

#include "headrace/train/update_rules.h"

namespace headrace::python {

// Returns the makers of the rules of the optimizers in a dict, by name. A maker throws ConfigError if the file has
// other options than its optimizer's rule. Throws ConfigError if the rule of an optimizer is one of the library's.
// REQUIRES: the GIL.
UpdateMakers python_rule_makers(const nanobind::dict& optimizers);

}  // namespace headrace::python
