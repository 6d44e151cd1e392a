// What explain() says of a plan's order: what it costs to read, and whether it mixes classes.
#pragma once

#include <string>
#include <vector>

#include "headrace/pipeline/plan/stage.h"

namespace headrace {

// Returns lines, or nothing: that small records in random order cost a disk more bytes than are used, and that a
// window holds few of the classes of data that are sorted by class. Looks at labels that are known without
// reading.
// `cached`: the plan has a cache.
std::string notes_on_order(const Source& source, const std::vector<StagePtr>& index_stages, bool cached);

}  // namespace headrace
