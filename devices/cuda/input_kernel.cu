#include "headrace/devices/cuda/input_kernel.h"

#include <algorithm>

#include "headrace/devices/cuda/load_kernels.h"

namespace headrace {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 8192;  // the rest is a grid-stride loop

template <typename Out>
__global__ void to_nhwc(cuda::ImageWork<Out> work) {
  write_images_nhwc(work, static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x,
                    static_cast<std::int64_t>(gridDim.x) * blockDim.x);
}

template <typename Out>
__global__ void to_nchw(cuda::ImageWork<Out> work) {
  write_images_nchw(work, static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x,
                    static_cast<std::int64_t>(gridDim.x) * blockDim.x);
}

}  // namespace

template <typename Out>
cudaError_t launch_input_kernel(const cuda::ImageWork<Out>& work, ImageLayout layout, cudaStream_t stream) {
  const std::int64_t items = work.items(layout);
  if (items == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned int>(std::min((items + kThreads - 1) / kThreads, kMaxBlocks));
  if (layout == ImageLayout::kChannelsLast) {
    to_nhwc<<<blocks, kThreads, 0, stream>>>(work);
  } else {
    to_nchw<<<blocks, kThreads, 0, stream>>>(work);
  }
  return cudaGetLastError();
}

cudaError_t load_image_kernels() {
  return cuda::load_kernels(to_nhwc<float>, to_nchw<float>, to_nhwc<BFloat16>, to_nchw<BFloat16>);
}

template cudaError_t launch_input_kernel(const cuda::ImageWork<float>&, ImageLayout, cudaStream_t);
template cudaError_t launch_input_kernel(const cuda::ImageWork<BFloat16>&, ImageLayout, cudaStream_t);

namespace {

__device__ cuda::WindowThread window_thread() {
  return {blockIdx.x, blockIdx.y, threadIdx.x, gridDim.x, gridDim.y};
}

template <int kWidth, int kChannels, bool kZeros, typename Out>
__global__ void __launch_bounds__(cuda::kWindowThreads) convert_windows(cuda::WindowWork<Out> work) {
  run_windows_nhwc<kWidth, kChannels, kZeros>(work, window_thread());
}

template <typename Out>
__global__ void __launch_bounds__(cuda::kWindowThreads) convert_windows_to_planes(cuda::WindowWork<Out> work) {
  run_windows_nchw(work, window_thread());
}

}  // namespace

template <typename Out>
cudaError_t launch_input_kernel(const cuda::WindowWork<Out>& work, ImageLayout layout, cudaStream_t stream) {
  const cuda::WindowGrid grid = window_grid(work, layout);
  if (work.images == 0 || grid.items == 0 || work.channels == 0) return cudaSuccess;
  const dim3 blocks(grid.x, grid.y);
  if (layout == ImageLayout::kChannelsLast) {
    cuda::by_window_pack(work, [&](auto width, auto channels, auto zeros) {
      convert_windows<width(), channels(), zeros()><<<blocks, cuda::kWindowThreads, 0, stream>>>(work);
    });
  } else {
    convert_windows_to_planes<<<blocks, cuda::kWindowThreads, 0, stream>>>(work);
  }
  return cudaGetLastError();
}

cudaError_t load_window_kernels() {
  return cuda::load_kernels(convert_windows<1, 0, true, float>, convert_windows<1, 3, true, float>,
                            convert_windows<4, 0, true, float>, convert_windows<4, 3, true, float>,
                            convert_windows<4, 3, false, float>, convert_windows<1, 0, true, BFloat16>,
                            convert_windows<1, 3, true, BFloat16>, convert_windows<8, 0, true, BFloat16>,
                            convert_windows<8, 3, true, BFloat16>, convert_windows<8, 3, false, BFloat16>,
                            convert_windows_to_planes<float>, convert_windows_to_planes<BFloat16>);
}

template cudaError_t launch_input_kernel(const cuda::WindowWork<float>&, ImageLayout, cudaStream_t);
template cudaError_t launch_input_kernel(const cuda::WindowWork<BFloat16>&, ImageLayout, cudaStream_t);

}  // namespace headrace
