// Crop, flip, cast, normalise and layout in one pass. A block has one image at a time, so that its window is read
// once; neighbouring threads write neighbouring floats, and read bytes that lie as near to each other.
#include "headrace/devices/cuda/window_kernel.h"

#include <algorithm>

#include "headrace/devices/base/reflect.h"

namespace headrace {
namespace {

constexpr int kThreads = 256;
constexpr int kItemsAThread = 8;            // what a block covers of an image: kThreads of these
constexpr std::int64_t kMaxImages = 32768;  // blocks along x; the rest is a stride
constexpr std::int64_t kMaxPieces = 4096;   // blocks along y, likewise

// Row or column `at` of the padded image as one of the image of `size`; -1: a border of zeros.
__device__ int inside(int at, int size, int pad, PixelBorder border) {
  at -= pad;
  if (at >= 0 && at < size) return at;
  return border == PixelBorder::kReflect ? reflected(at, size) : -1;
}

// Where the first channel of a window's pixel lies in its image; -1: in a border of zeros.
__device__ std::int64_t offset_of(const WindowKernelArguments& a, const PixelWindow& window, int pixel) {
  const int x = pixel % a.out_width;
  const int across = window.mirrored != 0 ? a.out_width - 1 - x : x;
  const int row = inside(window.top + pixel / a.out_width, a.height, a.pad, a.border);
  const int column = inside(window.left + across, a.width, a.pad, a.border);
  if (row < 0 || column < 0) return -1;
  return (static_cast<std::int64_t>(row) * a.width + column) * a.channels;
}

// Rounded twice, as the CPU does: a fused multiply-add would give other bits.
__device__ float convert(const std::uint8_t* image, std::int64_t offset, int channel, float scale, float shift) {
  const float pixel = offset < 0 ? 0.0F : static_cast<float>(image[offset + channel]);
  return __fadd_rn(__fmul_rn(pixel, scale), shift);
}

// A thread an element.
__global__ void windows_to_nhwc(WindowKernelArguments a) {
  const int elements = a.out_height * a.out_width * a.channels;
  for (std::int64_t n = blockIdx.x; n < a.images; n += gridDim.x) {
    const PixelWindow window = a.windows[n];
    const std::uint8_t* image = a.in + n * (static_cast<std::int64_t>(a.height) * a.width * a.channels);
    float* out = a.out + n * elements;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x; i < elements;
         i += static_cast<std::int64_t>(gridDim.y) * kThreads) {
      const int element = static_cast<int>(i);
      const int channel = element % a.channels;
      out[i] =
          convert(image, offset_of(a, window, element / a.channels), channel, a.scale[channel], a.shift[channel]);
    }
  }
}

// A thread a pixel, which writes to each plane.
__global__ void windows_to_nchw(WindowKernelArguments a) {
  const int pixels = a.out_height * a.out_width;
  for (std::int64_t n = blockIdx.x; n < a.images; n += gridDim.x) {
    const PixelWindow window = a.windows[n];
    const std::uint8_t* image = a.in + n * (static_cast<std::int64_t>(a.height) * a.width * a.channels);
    float* out = a.out + n * (static_cast<std::int64_t>(pixels) * a.channels);
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x; i < pixels;
         i += static_cast<std::int64_t>(gridDim.y) * kThreads) {
      const std::int64_t offset = offset_of(a, window, static_cast<int>(i));
      for (int c = 0; c < a.channels; ++c) {
        out[static_cast<std::int64_t>(c) * pixels + i] = convert(image, offset, c, a.scale[c], a.shift[c]);
      }
    }
  }
}

}  // namespace

cudaError_t launch_window_kernel(const WindowKernelArguments& arguments, ImageLayout layout, cudaStream_t stream) {
  const std::int64_t pixels = static_cast<std::int64_t>(arguments.out_height) * arguments.out_width;
  const std::int64_t items = layout == ImageLayout::kChannelsLast ? pixels * arguments.channels : pixels;
  if (arguments.images == 0 || items == 0 || arguments.channels == 0) return cudaSuccess;
  constexpr std::int64_t kPiece = std::int64_t{kThreads} * kItemsAThread;
  const dim3 blocks(static_cast<unsigned int>(std::min(arguments.images, kMaxImages)),
                    static_cast<unsigned int>(std::min((items + kPiece - 1) / kPiece, kMaxPieces)));
  if (layout == ImageLayout::kChannelsLast) {
    windows_to_nhwc<<<blocks, kThreads, 0, stream>>>(arguments);
  } else {
    windows_to_nchw<<<blocks, kThreads, 0, stream>>>(arguments);
  }
  return cudaGetLastError();
}

}  // namespace headrace
