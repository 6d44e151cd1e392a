#include <algorithm>

#include "headrace/devices/cuda/input_kernel.h"
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

}  // namespace headrace
