#include "headrace/tests/support/source_file.h"

namespace headrace::test {

std::filesystem::path source_file(const std::string& name) {
  return std::filesystem::path(HEADRACE_SOURCE_DIR) / name;
}

}  // namespace headrace::test
