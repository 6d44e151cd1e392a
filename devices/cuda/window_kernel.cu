#include "headrace/devices/cuda/input_kernel.h"
#include "headrace/devices/cuda/load_kernels.h"

namespace headrace {
namespace {

template <ImageLayout kLayout, typename Out>
__global__ void convert_windows(cuda::WindowWork<Out> work) {
  run_windows(work, kLayout, {blockIdx.x, blockIdx.y, threadIdx.x, gridDim.x, gridDim.y});
}

}  // namespace

template <typename Out>
cudaError_t launch_input_kernel(const cuda::WindowWork<Out>& work, ImageLayout layout, cudaStream_t stream) {
  const cuda::WindowGrid grid = window_grid(work, layout);
  if (work.images == 0 || grid.items == 0 || work.channels == 0) return cudaSuccess;
  const dim3 blocks(grid.x, grid.y);
  if (layout == ImageLayout::kChannelsLast) {
    convert_windows<ImageLayout::kChannelsLast><<<blocks, cuda::kWindowThreads, 0, stream>>>(work);
  } else {
    convert_windows<ImageLayout::kChannelsFirst><<<blocks, cuda::kWindowThreads, 0, stream>>>(work);
  }
  return cudaGetLastError();
}

cudaError_t load_window_kernels() {
  constexpr ImageLayout kLast = ImageLayout::kChannelsLast, kFirst = ImageLayout::kChannelsFirst;
  return cuda::load_kernels(convert_windows<kLast, float>, convert_windows<kFirst, float>,
                            convert_windows<kLast, BFloat16>, convert_windows<kFirst, BFloat16>);
}

template cudaError_t launch_input_kernel(const cuda::WindowWork<float>&, ImageLayout, cudaStream_t);
template cudaError_t launch_input_kernel(const cuda::WindowWork<BFloat16>&, ImageLayout, cudaStream_t);

}  // namespace headrace
