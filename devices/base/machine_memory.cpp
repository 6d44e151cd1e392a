#include "headrace/devices/base/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace headrace {
namespace {

// Of control groups of version 2 and 1, as a container sees its own.
constexpr const char* kLimits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};

// The number in the file; no limit where there is none, or "max".
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

std::uint64_t machine_memory_bytes() {
  static const std::uint64_t bytes = find_memory();
  return bytes;
}

}  // namespace headrace
