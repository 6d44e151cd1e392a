#include "headrace/pipeline/plan/index/parts.h"

#include <fmt/format.h>

#include "headrace/devices/base/checked_size.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/plan/index/selection.h"

namespace headrace {

RepeatIndex::RepeatIndex(std::uint64_t before, std::uint64_t times) : before_(before), times_(times) {
  if (checked_product({before, times})) return;
  throw ConfigError(fmt::format("repeat({}) of {} records is more than can be counted", times, before),
                    "repeat fewer times, or ask the loader for more epochs");
}

FilterIndex::FilterIndex(const FilterStage& filter) : selection_(filter.selection), kept_(&selection_->kept()) {}

std::uint64_t FilterIndex::size() const noexcept { return kept_->count(); }

Located FilterIndex::locate(const Located& at, IndexMemory* /*memory*/) const {
  return {.record = kept_->select(at.record), .pass = at.pass};
}

}  // namespace headrace
