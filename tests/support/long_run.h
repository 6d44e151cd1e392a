// How much a randomised test does: a part in an ordinary run, every case that a guarantee counts where
// HEADRACE_LONG=1 is set (`tools/check long`, tests/README.md).
#pragma once

#include <cstdlib>
#include <string_view>

namespace headrace::test {

// Returns `all` in a long run, else `some`.
inline int long_or(int all, int some) {
  const char* const value = std::getenv("HEADRACE_LONG");
  return value != nullptr && std::string_view(value) == "1" ? all : some;
}

}  // namespace headrace::test
