#include "headrace/tests/support/source_file.h"

#include <cstdlib>

namespace headrace::test {

std::filesystem::path source_file(const std::string& name) {
  const char* elsewhere = std::getenv("HEADRACE_SOURCE");
  return std::filesystem::path(elsewhere != nullptr ? elsewhere : HEADRACE_SOURCE_DIR) / name;
}

}  // namespace headrace::test
