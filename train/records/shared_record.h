// A checkpoint that the chief found, opened by all workers.
#pragma once

#include <optional>

#include "headrace/devices/workers.h"
#include "headrace/train/records/record.h"

namespace headrace {

// Replaces `record` by the chief's, or by std::nullopt if it has none: other workers may not see its folder, so
// they are sent the file, and keep it without a name in their folder for temporary files. All workers make the
// call.
void share_record(Workers& workers, std::optional<Record>& record);

}  // namespace headrace
