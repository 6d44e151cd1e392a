// Samples made smaller where that pays.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/cache/segment_format.h"

namespace headrace {

// Thread-safe. Tries zstd on the first samples and then uses it for all or for none: decoded photographs do not
// get smaller, label maps and screenshots do.
class SampleCompressor {
 public:
  // The sample as it shall be stored, in `into` where it was compressed, and by which codec.
  struct Stored {
    SampleCodec codec = SampleCodec::kNone;
    std::span<const std::byte> bytes;
  };
  Stored store(std::span<const std::byte> sample, std::vector<std::byte>& into);

  // Fills `sample` with what was stored by zstd; false where the bytes are not that.
  static bool expand(std::span<const std::byte> stored, std::span<std::byte> sample) noexcept;

 private:
  std::atomic<std::uint64_t> tried_{0}, plain_bytes_{0}, compressed_bytes_{0};
};

}  // namespace headrace
