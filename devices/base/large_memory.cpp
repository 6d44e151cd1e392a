#include "headrace/devices/base/large_memory.h"

#include <sys/mman.h>

#include <cstdlib>

namespace headrace {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLargePage = std::size_t{2} << 20;

}  // namespace

void FreeMemory::operator()(std::byte* memory) const noexcept { std::free(memory); }

LargeMemory allocate_large(std::size_t bytes) noexcept {
  const bool large = bytes >= kLargePage;
  void* memory = nullptr;
  if (posix_memalign(&memory, large ? kLargePage : kAlignment, bytes) != 0) return nullptr;
#if defined(MADV_HUGEPAGE)
  // Advice: where it is refused the pages are small, and nothing else is different.
  if (large) madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  return LargeMemory(static_cast<std::byte*>(memory));
}

}  // namespace headrace
