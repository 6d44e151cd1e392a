// Several copies in one call of CUDA. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/stream.h"

namespace headrace {

class CopyBatch {
 public:
  // With the stream's device current, while the stream does not capture: CUDA refuses batches within a capture.
  // False where this CUDA has none: nothing was submitted. Throws DeviceError.
  bool submit(std::span<const MemoryCopy> copies, cudaStream_t stream, const std::string& device);

 private:
  cudaError_t submit(cudaStream_t stream);

  bool supported_ = true;
  // Kept from call to call.
  std::vector<void*> to_;
  std::vector<const void*> from_;
  std::vector<std::size_t> bytes_;
};

}  // namespace headrace
