#include "headrace/devices/cuda/out_of_memory.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/devices/device.h"

namespace headrace {

void throw_out_of_memory(const Device& device, std::size_t bytes, MemoryPlace place) {
  cudaGetLastError();  // so that the next call does not report it again
  std::size_t free = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free, &total);
  const MemoryUse use = device.memory_use();
  throw DeviceError(
      ErrorCode::kOutOfMemory,
      fmt::format("cannot allocate {} bytes of {} memory; this replica holds {} device and {} pinned "
                  "bytes, the GPU has {} free of {}",
                  bytes, place == MemoryPlace::kPinned ? "pinned" : "device", use.device_bytes, use.pinned_bytes,
                  free, total),
      device.info().name, "a smaller batch or fewer batches in flight need less");
}

}  // namespace headrace
