#include <cstdlib>

#include "headrace/tests/support/data.h"

namespace headrace::test {

std::optional<std::filesystem::path> shared_data(const std::string& name) {
  const char* named = std::getenv("HEADRACE_DATA");
  const std::filesystem::path root = named != nullptr
                                         ? std::filesystem::path(named)
                                         : std::filesystem::path(HEADRACE_SOURCE_DIR) / ".." / "shared" / "data";
  std::error_code ignored;
  if (std::filesystem::exists(root / name, ignored)) return std::filesystem::canonical(root / name);
  return std::nullopt;
}

std::filesystem::path source_file(const std::string& name) {
  const char* elsewhere = std::getenv("HEADRACE_SOURCE");
  return std::filesystem::path(elsewhere != nullptr ? elsewhere : HEADRACE_SOURCE_DIR) / name;
}

}  // namespace headrace::test
