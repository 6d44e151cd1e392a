// What device work tells a stream's next synchronize(). Private to the CUDA backend.
#pragma once

#include <exception>

namespace headrace {

// Asked after the work is done, on the thread that synchronizes.
class StreamReport {
 public:
  virtual ~StreamReport() = default;
  // The error that the work has left since it was last asked; null where there is none.
  virtual std::exception_ptr take() noexcept = 0;
};

}  // namespace headrace
