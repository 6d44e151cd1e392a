// The fused input kernel for windows of padded images, and for images picked from many: its host side. Private to
// the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/cuda/window_work.h"

namespace headrace {

// All pointers are on the current device. Returns the status of the launch; nothing to write is no launch.
template <typename Out>
cudaError_t launch_window_kernel(const cuda::WindowWork<Out>& work, ImageLayout layout, cudaStream_t stream);

}  // namespace headrace
