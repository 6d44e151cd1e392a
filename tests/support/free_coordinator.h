// An address at which the workers of a test meet.
#pragma once

#include <unistd.h>

#include <atomic>
#include <string>

namespace headrace::test {

// Another one for each world of this program, and hardly one of another program's.
inline std::string free_coordinator() {
  static std::atomic<int> used{0};
  return "127.0.0.1:" + std::to_string(20'000 + (getpid() * 37 + used.fetch_add(1)) % 20'000);
}

}  // namespace headrace::test
