#include "headrace/tests/support/folder_contents.h"

#include <fstream>
#include <iterator>

namespace headrace::test {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

constexpr auto kSkipForbidden = fs::directory_options::skip_permission_denied;

FolderContents contents_of(const fs::path& folder) {
  FolderContents contents;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, kSkipForbidden)) {
    std::string& what = contents[entry.path().string()];
    if (entry.is_symlink()) {
      what = "link to " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      what = "file " + text_of(entry.path());
    } else {
      what = "type " + std::to_string(static_cast<int>(entry.symlink_status().type()));
    }
  }
  return contents;
}

}  // namespace headrace::test
