#include "headrace/devices/cuda/copy_batch.h"

#include "headrace/devices/cuda/cuda_check.h"

namespace headrace {

bool CopyBatch::submit(std::span<const MemoryCopy> copies, cudaStream_t stream, const std::string& device) {
  if (!supported_) return false;
  to_.clear();
  from_.clear();
  bytes_.clear();
  for (const MemoryCopy& copy : copies) {
    if (copy.bytes == 0) continue;  // CUDA refuses it
    to_.push_back(copy.to);
    from_.push_back(copy.from);
    bytes_.push_back(copy.bytes);
  }
  if (bytes_.empty()) return true;
  const cudaError_t status = submit(stream);
  if (status == cudaErrorNotSupported || status == cudaErrorCallRequiresNewerDriver) {
    cudaGetLastError();
    supported_ = false;
    return false;
  }
  if (status != cudaSuccess) detail::throw_cuda_error(status, "cudaMemcpyBatchAsync", device);
  return true;
}

// Of CUDA 13: the function has other arguments before.
cudaError_t CopyBatch::submit(cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  cudaMemcpyAttributes in_stream_order{};
  in_stream_order.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t from_the_first = 0;
  return cudaMemcpyBatchAsync(to_.data(), from_.data(), bytes_.data(), bytes_.size(), &in_stream_order,
                              &from_the_first, 1, stream);
#else
  static_cast<void>(stream);
  return cudaErrorNotSupported;
#endif
}

}  // namespace headrace
