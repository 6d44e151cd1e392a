// Options for the memory traffic of a kernel.
#pragma once

#include <cstddef>
#include <span>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace headrace {

enum class Stores {
  kCached,       // like everything else
  kNonTemporal,  // past the caches: the lines need not be read before they are written. For results that are
                 // larger than the caches, and a matter of speed alone
};

// Memory traffic beside the arithmetic; affects only speed.
struct Traffic {
  Stores stores = Stores::kCached;
  std::span<const std::byte> ahead = {};  // the next input: prefetched
};

// Call before announcing results to another thread: non-temporal stores are unordered with other stores.
inline void finish(Stores stores) noexcept {
#if defined(__x86_64__)
  if (stores == Stores::kNonTemporal) _mm_sfence();
#else
  (void)stores;
#endif
}

}  // namespace headrace
