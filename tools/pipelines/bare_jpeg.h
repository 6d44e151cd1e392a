// The shortest honest use of libjpeg-turbo: one handle, whole images to RGB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

struct jpeg_decompress_struct;

namespace headrace::tools {

// Not thread-safe. Throws Error(kDataCorrupt).
class BareJpeg {
 public:
  BareJpeg();
  ~BareJpeg();
  BareJpeg(const BareJpeg&) = delete;
  BareJpeg& operator=(const BareJpeg&) = delete;

  // Returns row-major pixels (H, W, 3), valid until the next call.
  std::span<const std::uint8_t> decode(std::span<const std::byte> encoded);

 private:
  struct Handle;
  Handle* handle_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace headrace::tools
