// A net as a table for people.
#pragma once

#include <string>

#include "headrace/devices/base/api.h"
#include "headrace/train/graph.h"

namespace HEADRACE_API headrace {

// One layer a line: name, kind, result shape, parameters; totals below.
std::string summarize(const Graph& graph);

}  // namespace headrace
