// How a kernel writes its result.
#pragma once

namespace headrace {

enum class Stores {
  kCached,    // like everything else
  kStreamed,  // past the caches: the lines need not be read before they are written. For results that are larger
              // than the caches, and a matter of speed alone
};

}  // namespace headrace
