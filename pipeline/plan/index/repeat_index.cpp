#include "headrace/pipeline/plan/index/repeat_index.h"

#include <fmt/format.h>

#include "headrace/devices/base/checked_size.h"
#include "headrace/devices/base/error.h"

namespace headrace {

RepeatIndex::RepeatIndex(std::uint64_t before, std::uint64_t times) : before_(before), times_(times) {
  if (checked_product({before, times})) return;
  throw ConfigError(fmt::format("repeat({}) of {} records is more than can be counted", times, before),
                    "repeat fewer times, or ask the loader for more epochs");
}

std::uint64_t RepeatIndex::size() const noexcept { return before_ * times_; }

Located RepeatIndex::locate(const Located& at, IndexMemory* /*memory*/) const {
  return {.record = at.record % before_, .pass = at.pass * times_ + at.record / before_};
}

}  // namespace headrace
