// Compresses samples if that pays off.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/cache/disk/segment_format.h"

namespace headrace {

// Thread-safe. Tries zstd on the first samples, then uses it for all or for none: decoded photographs do not
// shrink, label maps and screenshots do.
class SampleCompressor {
 public:
  // The bytes to store, and their codec. Compressed bytes are in `into`.
  struct Stored {
    SampleCodec codec = SampleCodec::kNone;
    std::span<const std::byte> bytes;
  };
  Stored store(std::span<const std::byte> sample, std::vector<std::byte>& into);

  // Expands zstd's bytes into `sample`. Returns false if they are not its compressed bytes.
  static bool expand(std::span<const std::byte> stored, std::span<std::byte> sample) noexcept;

 private:
  std::atomic<std::uint64_t> tried_{0}, plain_bytes_{0}, compressed_bytes_{0};
};

}  // namespace headrace
