#include "headrace/devices/base/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>

namespace headrace {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLargePage = std::size_t{2} << 20;

// The limits of control groups of versions 2 and 1, as a container sees its own.
constexpr const char* kLimits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};

// Returns the number in the file; no limit if there is none, or "max".
std::uint64_t limit_in(const char* path) {
  constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::ifstream file(path);
  std::uint64_t limit = 0;
  return file >> limit && limit > 0 ? limit : kNone;
}

std::uint64_t find_memory() {
  auto bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const char* path : kLimits) bytes = std::min(bytes, limit_in(path));
  return bytes;
}

}  // namespace

void FreeMemory::operator()(std::byte* memory) const noexcept { std::free(memory); }

LargeMemory allocate_large(std::size_t bytes) noexcept {
  const bool large = bytes >= kLargePage;
  void* memory = nullptr;
  if (posix_memalign(&memory, large ? kLargePage : kAlignment, bytes) != 0) return nullptr;
#if defined(MADV_HUGEPAGE)
  // Only advice: if it is refused, the pages are small and nothing else changes.
  if (large) madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
#endif
  return LargeMemory(static_cast<std::byte*>(memory));
}

void return_freed_memory() noexcept {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

std::uint64_t machine_memory_bytes() {
  static const std::uint64_t bytes = find_memory();
  return bytes;
}

}  // namespace headrace
