// Bytes that come once, in order: a named pipe, a terminal, what another program writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "headrace/devices/base/descriptor.h"

namespace headrace {

// One thread at a time. Failures are DataErrors that name the path.
class Pipe {
 public:
  // Waits until a named pipe has a writer.
  static Pipe open(const std::filesystem::path& path);

  // At least one byte of `into`, or 0 at the end. Waits for it.
  std::size_t read_some(std::span<std::byte> into);

 private:
  Pipe(std::filesystem::path path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::filesystem::path path_;
  Descriptor descriptor_;
  std::uint64_t offset_ = 0;
};

}  // namespace headrace
