// Cast, normalisation and layout of whole images, as work for threads. One byte is read and one number written for
// each element, so neighbouring threads touch neighbouring addresses. Plain code, run by the GPU and, in tests, by
// the host. Private to the CUDA backend.
#pragma once

#include <cstdint>

#include "headrace/devices/cuda/window_work.h"

namespace headrace::cuda {

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

// The items of thread `thread` of `threads`. An item is an element; reads and writes run alike.
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

// function(work) with the work that a checked conversion is.
template <typename Function>
void by_input_work(const PixelConversion& conversion, const Function& function) {
  const bool whole = !conversion.windows.defined() && !conversion.picks.defined() && !conversion.tones.defined();
  by_type(conversion.out.dtype, [&]<typename Out>(Out) {
    whole ? function(image_work<Out>(conversion)) : function(window_work<Out>(conversion));
  });
}

}  // namespace headrace::cuda
