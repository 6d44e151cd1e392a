#include "headrace/devices/base/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "headrace/devices/base/system_file.h"

namespace headrace {

Pipe Pipe::open(const std::filesystem::path& path) {
  const BlockingCall waits;
  Descriptor descriptor = os::open(path, O_RDONLY);
  if (!descriptor.is_open()) os::fail(path, "cannot open", errno);
  return {path, std::move(descriptor)};
}

std::size_t Pipe::read_some(std::span<std::byte> into) {
  const BlockingCall waits;
  while (true) {
    std::size_t wanted = std::min(into.size(), os::kMaxCall);
    if (const int error = os::fault(FileOperation::kRead, path_, offset_, &wanted))
      os::fail(path_, "cannot read", error, offset_);
    const ssize_t count = ::read(descriptor_.get(), into.data(), wanted);
    if (count >= 0) {
      offset_ += static_cast<std::uint64_t>(count);
      return static_cast<std::size_t>(count);
    }
    if (errno != EINTR) os::fail(path_, "cannot read", errno, offset_);
  }
}

}  // namespace headrace
