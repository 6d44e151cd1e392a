#include "headrace/tools/measure/resident_memory.h"

#include <unistd.h>

#include <fstream>
#include <string>

namespace headrace::tools {

std::uint64_t resident_memory_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  if (!(statm >> total >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t peak_resident_memory_bytes() {
  // Not getrusage(): what the process was before exec() counts there.
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace headrace::tools
