// The input kernels as work for threads: whole images, and windows of them with tones. Plain code, run by the GPU
// and, in tests, by the host. Private to the CUDA backend.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headrace/devices/base/reflect.h"
#include "headrace/devices/base/shape.h"
#include "headrace/devices/cuda/element.h"
#include "headrace/devices/cuda/host_device.h"
#include "headrace/devices/input_kernels.h"

namespace headrace::cuda {

// Crop, flip, cast, normalise, tone and layout of images that may be anywhere in memory, as work for threads: a
// block processes one image at a time, so that its window is read once.
inline constexpr int kWindowThreads = 256;

// Extents in pixels; an image and a window have fewer than 2^31 elements each.
template <typename Out>  // float or BFloat16
struct WindowWork {
  const std::uint8_t* in;      // images of (height, width, channels)
  const std::int32_t* picks;   // the image from which each result is made; null: in order
  const PixelWindow* windows;  // one per result, within the padded image; null: the whole image
  const float* scale;
  const float* shift;
  const PixelTone* tones;  // one per result; null: none
  Out* out;                // (images, out_height, out_width, channels), or channels before the pixels
  std::int64_t images;     // results
  int height, width;
  int out_height, out_width;
  int channels;
  int pad;
  PixelBorder border;
};

// A block's data of one result.
template <typename Out>
struct WindowImage {
  const std::uint8_t* in;
  Out* out;
  PixelWindow window;
  const PixelTone* tone;  // null: none
};

template <typename Out>
HEADRACE_HOST_DEVICE WindowImage<Out> window_image(const WindowWork<Out>& work, std::int64_t n) {
  const std::int64_t from = work.picks != nullptr ? work.picks[n] : n;
  const std::int64_t bytes = static_cast<std::int64_t>(work.height) * work.width * work.channels;
  const std::int64_t numbers = static_cast<std::int64_t>(work.out_height) * work.out_width * work.channels;
  return {work.in + from * bytes, work.out + n * numbers,
          work.windows != nullptr ? work.windows[n] : PixelWindow{0, 0, 0},
          work.tones != nullptr ? work.tones + n : nullptr};
}

// Returns row or column `at` of the padded image as one of the image of `size`; -1: a border of zeros.
HEADRACE_HOST_DEVICE int inside_padding(int at, int size, int pad, PixelBorder border) {
  at -= pad;
  if (at >= 0 && at < size) return at;
  return border == PixelBorder::kReflect ? reflected(at, size) : -1;
}

// Returns the offset of the first channel of a window's pixel in its image; -1: in a border of zeros.
template <typename Out>
HEADRACE_HOST_DEVICE std::int64_t window_offset(const WindowWork<Out>& work, const PixelWindow& window,
                                                int pixel) {
  const int x = pixel % work.out_width;
  const int across = window.mirrored != 0 ? work.out_width - 1 - x : x;
  const int row = inside_padding(window.top + pixel / work.out_width, work.height, work.pad, work.border);
  const int column = inside_padding(window.left + across, work.width, work.pad, work.border);
  if (row < 0 || column < 0) return -1;
  return (static_cast<std::int64_t>(row) * work.width + column) * work.channels;
}

// Rounds twice, like the CPU: a fused multiply-add would give other bits.
HEADRACE_HOST_DEVICE float scaled(float pixel, float scale, float shift) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(__fmul_rn(pixel, scale), shift);
#else
  const float product = pixel * scale;
  return product + shift;
#endif
}

template <typename Out>
HEADRACE_HOST_DEVICE float scaled_pixel(const WindowWork<Out>& work, const WindowImage<Out>& image,
                                        std::int64_t offset, int channel) {
  const float pixel = offset < 0 ? 0.0F : static_cast<float>(image.in[offset + channel]);
  const float value = scaled(pixel, work.scale[channel], work.shift[channel]);
  return image.tone == nullptr ? value : (value + image.tone->shift) * image.tone->gain;
}

// An item is an element: neighbouring threads write neighbouring numbers.
template <typename Out>
HEADRACE_HOST_DEVICE void write_item_nhwc(const WindowWork<Out>& work, const WindowImage<Out>& image, int item) {
  const int channel = item % work.channels;
  const std::int64_t offset = window_offset(work, image.window, item / work.channels);
  image.out[item] = element_of<Out>(scaled_pixel(work, image, offset, channel));
}

// An item is a pixel, which is written to each plane.
template <typename Out>
HEADRACE_HOST_DEVICE void write_item_nchw(const WindowWork<Out>& work, const WindowImage<Out>& image, int item) {
  const std::int64_t offset = window_offset(work, image.window, item);
  const std::int64_t pixels = static_cast<std::int64_t>(work.out_height) * work.out_width;
  for (int c = 0; c < work.channels; ++c) {
    image.out[c * pixels + item] = element_of<Out>(scaled_pixel(work, image, offset, c));
  }
}

// Blocks along x take images, blocks along y pieces of one; grid strides cover the rest.
struct WindowGrid {
  std::int64_t items = 0;  // of an image
  unsigned int x = 0, y = 0;
};

template <typename Out>
WindowGrid window_grid(const WindowWork<Out>& work, ImageLayout layout) {
  constexpr std::int64_t kItemsAThread = 8, kPiece = kWindowThreads * kItemsAThread;
  constexpr std::int64_t kMaxImages = 32768, kMaxPieces = 4096;
  const std::int64_t pixels = static_cast<std::int64_t>(work.out_height) * work.out_width;
  const std::int64_t items = layout == ImageLayout::kChannelsLast ? pixels * work.channels : pixels;
  return {.items = items,
          .x = static_cast<unsigned int>(std::min(work.images, kMaxImages)),
          .y = static_cast<unsigned int>(std::min((items + kPiece - 1) / kPiece, kMaxPieces))};
}

// A thread's place in the grid.
struct WindowThread {
  unsigned int x, y;    // its block
  unsigned int thread;  // in the block
  unsigned int blocks_x, blocks_y;
};

template <typename Out>
HEADRACE_HOST_DEVICE void run_windows(const WindowWork<Out>& work, ImageLayout layout, const WindowThread& at) {
  const std::int64_t pixels = static_cast<std::int64_t>(work.out_height) * work.out_width;
  const bool last = layout == ImageLayout::kChannelsLast;
  const std::int64_t items = last ? pixels * work.channels : pixels;
  for (std::int64_t n = at.x; n < work.images; n += at.blocks_x) {
    const WindowImage<Out> image = window_image(work, n);
    for (std::int64_t i = static_cast<std::int64_t>(at.y) * kWindowThreads + at.thread; i < items;
         i += static_cast<std::int64_t>(at.blocks_y) * kWindowThreads) {
      if (last) {
        write_item_nhwc(work, image, static_cast<int>(i));
      } else {
        write_item_nchw(work, image, static_cast<int>(i));
      }
    }
  }
}

// The extents fit into int: see check_pixel_conversion().
template <typename Out>
WindowWork<Out> window_work(const PixelConversion& conversion) {
  const Shape& in = conversion.pixels.shape;
  const Shape& out = conversion.out.shape;
  const int rows = conversion.layout == ImageLayout::kChannelsLast ? 1 : 2;  // axis of the output
  return {.in = conversion.pixels.as<const std::uint8_t>(),
          .picks = conversion.picks.as<const std::int32_t>(),
          .windows = conversion.windows.as<const PixelWindow>(),
          .scale = conversion.scale.as<const float>(),
          .shift = conversion.shift.as<const float>(),
          .tones = conversion.tones.as<const PixelTone>(),
          .out = conversion.out.as<Out>(),
          .images = out[0],
          .height = static_cast<int>(in[1]),
          .width = static_cast<int>(in[2]),
          .out_height = static_cast<int>(out[rows]),
          .out_width = static_cast<int>(out[rows + 1]),
          .channels = static_cast<int>(in[3]),
          .pad = static_cast<int>(conversion.pad),
          .border = conversion.border};
}

// out = pixel * scale[c] + shift[c] over `images` images of `pixels` pixels of `channels` bytes each.
template <typename Out>  // float or BFloat16
struct ImageWork {
  const std::uint8_t* in;
  const float* scale;
  const float* shift;
  Out* out;
  std::int64_t images;
  std::int64_t pixels;
  int channels;

  std::int64_t items(ImageLayout layout) const {
    return images * pixels * (layout == ImageLayout::kChannelsLast ? channels : 1);
  }
};

// The items of thread `thread` of `threads`. An item is an element; reads and writes have the same order.
template <typename Out>
HEADRACE_HOST_DEVICE void write_images_nhwc(const ImageWork<Out>& work, std::int64_t thread,
                                            std::int64_t threads) {
  const std::int64_t elements = work.images * work.pixels * work.channels;
  for (std::int64_t i = thread; i < elements; i += threads) {
    const int channel = static_cast<int>(i % work.channels);
    work.out[i] = element_of<Out>(scaled(work.in[i], work.scale[channel], work.shift[channel]));
  }
}

// An item is a pixel: a warp reads 32 * channels bytes in a row and writes 32 numbers in a row to each plane.
template <typename Out>
HEADRACE_HOST_DEVICE void write_images_nchw(const ImageWork<Out>& work, std::int64_t thread,
                                            std::int64_t threads) {
  for (std::int64_t p = thread; p < work.images * work.pixels; p += threads) {
    const std::int64_t image = p / work.pixels;
    const std::uint8_t* in = work.in + p * work.channels;
    Out* out = work.out + image * work.pixels * work.channels + (p - image * work.pixels);
    for (int c = 0; c < work.channels; ++c) {
      out[c * work.pixels] = element_of<Out>(scaled(in[c], work.scale[c], work.shift[c]));
    }
  }
}

template <typename Out>
ImageWork<Out> image_work(const PixelConversion& conversion) {
  const Shape& shape = conversion.pixels.shape;
  return {.in = conversion.pixels.as<const std::uint8_t>(),
          .scale = conversion.scale.as<const float>(),
          .shift = conversion.shift.as<const float>(),
          .out = conversion.out.as<Out>(),
          .images = shape[0],
          .pixels = shape[1] * shape[2],
          .channels = static_cast<int>(shape[3])};
}

// Calls function(work) with the work of a checked conversion.
template <typename Function>
void by_input_work(const PixelConversion& conversion, const Function& function) {
  const bool whole = !conversion.windows.defined() && !conversion.picks.defined() && !conversion.tones.defined();
  by_type(conversion.out.dtype, [&]<typename Out>(Out) {
    whole ? function(image_work<Out>(conversion)) : function(window_work<Out>(conversion));
  });
}

}  // namespace headrace::cuda
