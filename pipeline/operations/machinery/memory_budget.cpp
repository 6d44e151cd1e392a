#include "headrace/pipeline/operations/machinery/memory_budget.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace {

bool MemoryBudget::try_charge(std::uint64_t bytes) noexcept {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (limit_ != 0 && (used > limit_ || bytes > limit_ - used)) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void MemoryBudget::charge(std::uint64_t bytes, const std::string& purpose) {
  if (try_charge(bytes)) return;
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("{} needs {} bytes more; {} of the {} bytes of {} are taken", purpose, bytes, used(),
                          limit_, named(name_)),
              fmt::format("raise {} to {} or more, or use fewer threads or a smaller prefetch", named(name_),
                          used() + bytes));
}

}  // namespace headrace
