// One byte is read and one number written for each element: the kernel is bound by memory, so all that matters
// is that neighbouring threads touch neighbouring addresses.
#include "headrace/devices/cuda/input_kernel.h"

#include <algorithm>

#include "headrace/devices/cuda/math/element.h"

namespace headrace {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 8192;  // the rest is a grid-stride loop

// Rounded twice, as the CPU does: a fused multiply-add would give other bits.
template <typename Out>
__device__ Out convert(std::uint8_t pixel, float scale, float shift) {
  return cuda::element_of<Out>(__fadd_rn(__fmul_rn(static_cast<float>(pixel), scale), shift));
}

// A thread an element; reads and writes run alike.
template <typename Out>
__global__ void to_nhwc(InputKernelArguments<Out> a) {
  const std::int64_t elements = a.images * a.pixels * a.channels;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements;
       i += stride) {
    const int channel = static_cast<int>(i % a.channels);
    a.out[i] = convert<Out>(a.in[i], a.scale[channel], a.shift[channel]);
  }
}

// A thread a pixel: a warp reads 32 * channels bytes in a row and writes 32 numbers in a row to each plane.
template <typename Out>
__global__ void to_nchw(InputKernelArguments<Out> a) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; p < a.images * a.pixels;
       p += stride) {
    const std::int64_t image = p / a.pixels;
    const std::uint8_t* in = a.in + p * a.channels;
    Out* out = a.out + image * a.pixels * a.channels + (p - image * a.pixels);
    for (int c = 0; c < a.channels; ++c) out[c * a.pixels] = convert<Out>(in[c], a.scale[c], a.shift[c]);
  }
}

}  // namespace

template <typename Out>
cudaError_t launch_input_kernel(const InputKernelArguments<Out>& arguments, ImageLayout layout,
                                cudaStream_t stream) {
  const std::int64_t pixels = arguments.images * arguments.pixels;
  const std::int64_t items = layout == ImageLayout::kChannelsLast ? pixels * arguments.channels : pixels;
  if (items == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned int>(std::min((items + kThreads - 1) / kThreads, kMaxBlocks));
  if (layout == ImageLayout::kChannelsLast) {
    to_nhwc<<<blocks, kThreads, 0, stream>>>(arguments);
  } else {
    to_nchw<<<blocks, kThreads, 0, stream>>>(arguments);
  }
  return cudaGetLastError();
}
template cudaError_t launch_input_kernel(const InputKernelArguments<float>&, ImageLayout, cudaStream_t);
template cudaError_t launch_input_kernel(const InputKernelArguments<BFloat16>&, ImageLayout, cudaStream_t);

}  // namespace headrace
