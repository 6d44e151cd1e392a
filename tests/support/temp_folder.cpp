#include "headrace/tests/support/temp_folder.h"

#include <stdlib.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace headrace::test {

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "headrace-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + name);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TempFolder::write(const std::string& name, std::span<const std::byte> bytes) const {
  const std::filesystem::path file = path_ / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + file.string());
  return file;
}

std::filesystem::path TempFolder::write(const std::string& name, std::string_view text) const {
  return write(name, std::as_bytes(std::span(text)));
}

void TempFolder::patch(const std::filesystem::path& file, std::size_t offset, std::byte value) {
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(offset));
  out.put(static_cast<char>(value));
  out.close();
  if (!out) throw std::runtime_error("cannot patch " + file.string());
}

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
