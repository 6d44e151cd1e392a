#include "headrace/devices/base/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "headrace/devices/base/blocking_call.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/system_file.h"

namespace headrace {

AppendFile::AppendFile(const std::filesystem::path& path, std::span<const std::byte> head) : path_(path) {
  os::TemporaryFile file = os::create_temporary(path);
  try {
    os::write_all(file.descriptor, head, file.path, 0);
    os::rename_file(file.path, path);
  } catch (...) {
    ::unlink(file.path.c_str());
    throw;
  }
  size_ = head.size();
  descriptor_ = std::move(file.descriptor);
}

void AppendFile::append(std::span<const std::byte> bytes) {
  os::write_all(descriptor_, bytes, path_, size_);
  size_ += bytes.size();
}

void append_to_file(const std::filesystem::path& path, std::string_view text) {
  std::optional<BlockingCall> waits;
  if (path_kind(path) == PathKind::kPipe) waits.emplace();
  const Descriptor file = os::open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (!file.is_open()) os::fail(path, "cannot open for appending", errno);
  os::write_all(file, std::as_bytes(std::span(text)), path, 0);
}

}  // namespace headrace
