// A net as a table for people.
#pragma once

#include <string>

#include "headrace/train/graph.h"

namespace headrace {

// One layer a line: name, kind, result shape, parameters; totals below.
std::string summarize(const Graph& graph);

}  // namespace headrace
