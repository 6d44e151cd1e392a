// The input kernels as work for threads: whole images, and windows of them with tones. Plain code, run by the GPU
// and, in tests, by the host. Private to the CUDA backend.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headrace/devices/base/shape.h"
#include "headrace/devices/cuda/element.h"
#include "headrace/devices/input_kernels.h"

namespace headrace::cuda {

// Crop, flip, cast, normalise, tone and layout of images that may be anywhere in memory, as work for threads: a
// block processes one image at a time, so that its window is read once.
inline constexpr int kWindowThreads = 128;

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

// What is read first of a result: the image it is made from, and its window.
struct WindowChoice {
  std::int64_t from;
  PixelWindow window;
};

template <typename Out>
HEADRACE_HOST_DEVICE WindowChoice window_choice(const WindowWork<Out>& work, std::int64_t n) {
  return {work.picks != nullptr ? work.picks[n] : n,
          work.windows != nullptr ? work.windows[n] : PixelWindow{0, 0, 0}};
}

template <typename Out>
HEADRACE_HOST_DEVICE WindowImage<Out> window_image(const WindowWork<Out>& work, std::int64_t n,
                                                   const WindowChoice& choice) {
  const std::int64_t bytes = static_cast<std::int64_t>(work.height) * work.width * work.channels;
  const std::int64_t numbers = static_cast<std::int64_t>(work.out_height) * work.out_width * work.channels;
  return {work.in + choice.from * bytes, work.out + n * numbers, choice.window,
          work.tones != nullptr ? work.tones + n : nullptr};
}

// Returns row or column `at` of the padded image as one of the image of `size`; -1: a border of zeros.
HEADRACE_HOST_DEVICE int inside_padding(int at, int size, int pad, PixelBorder border) {
  at -= pad;
  const int from_end = size - 1 - (at < 0 ? -at : at);
  const int reflection = size - 1 - (from_end < 0 ? -from_end : from_end);  // `at` itself within the image
  const bool inside = static_cast<unsigned int>(at) < static_cast<unsigned int>(size);
  return border == PixelBorder::kReflect || inside ? reflection : -1;
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

HEADRACE_HOST_DEVICE float toned(const PixelTone& tone, float value) { return (value + tone.shift) * tone.gain; }

template <typename Out>
HEADRACE_HOST_DEVICE float scaled_pixel(const WindowWork<Out>& work, const WindowImage<Out>& image,
                                        std::int64_t offset, int channel) {
  const float pixel = offset < 0 ? 0.0F : static_cast<float>(image.in[offset + channel]);
  const float value = scaled(pixel, work.scale[channel], work.shift[channel]);
  return image.tone == nullptr ? value : toned(*image.tone, value);
}

// A thread's pack of neighbouring numbers in each result, channels last: where it begins, and the factors of
// its channels. A pack lies in one line. kChannels is 0 for any number of channels.
template <int kWidth, int kChannels>
struct WindowPack {
  static constexpr int kFactors = kChannels > 0 && kChannels < kWidth ? kChannels : kWidth;
  static constexpr int kPixels = kChannels > 0 ? (kWidth + 2 * kChannels - 2) / kChannels : kWidth;

  int first, y, x, channel;
  float scale[kFactors], shift[kFactors];  // of number k: k % kFactors
};

template <int kWidth, int kChannels, typename Out>
HEADRACE_HOST_DEVICE WindowPack<kWidth, kChannels> window_pack(const WindowWork<Out>& work, int item) {
  using Pack = WindowPack<kWidth, kChannels>;
  const int channels = kChannels > 0 ? kChannels : work.channels;
  Pack pack;
  pack.first = item * kWidth;
  const int pixel = pack.first / channels;
  pack.channel = pack.first - pixel * channels;
  pack.y = pixel / work.out_width;
  pack.x = pixel - pack.y * work.out_width;
  for (int k = 0; k < Pack::kFactors; ++k) {
    const int channel = (pack.channel + k) % channels;
    pack.scale[k] = work.scale[channel];
    pack.shift[k] = work.shift[channel];
  }
  return pack;
}

// Without kZeros pixels are reflected, if there is a border at all.
template <bool kZeros, typename Out>
HEADRACE_HOST_DEVICE PixelBorder border_of(const WindowWork<Out>& work) {
  return kZeros ? work.border : PixelBorder::kReflect;
}

inline constexpr int kOutside = -0x40000000;  // in place of an index in a line of an image: a border of zeros

// Returns where number 0 of a pack would be in the image's line if all its numbers were of its pixel `i`.
template <int kChannels, bool kZeros, typename Pack, typename Out>
HEADRACE_HOST_DEVICE int pack_base(const WindowWork<Out>& work, const PixelWindow& window, const Pack& pack,
                                   int i) {
  const int channels = kChannels > 0 ? kChannels : work.channels;
  const int x = pack.x + i;  // beyond the line: of no number
  const int across = window.mirrored != 0 ? work.out_width - 1 - x : x;
  const int column = inside_padding(window.left + across, work.width, work.pad, border_of<kZeros>(work));
  return kZeros && column < 0 ? kOutside : (column - i) * channels + pack.channel;
}

// Loads the numbers of a pack before they are scaled.
template <bool kZeros, int kWidth, int kChannels, typename Out>
HEADRACE_HOST_DEVICE void load_window(const WindowWork<Out>& work, const WindowImage<Out>& image,
                                      const WindowPack<kWidth, kChannels>& pack, float (&numbers)[kWidth]) {
  constexpr int kPixels = WindowPack<kWidth, kChannels>::kPixels;
  const int channels = kChannels > 0 ? kChannels : work.channels;
  const int row = inside_padding(image.window.top + pack.y, work.height, work.pad, border_of<kZeros>(work));
  const std::uint8_t* line = image.in + row * (work.width * channels);
  int bases[kPixels];
  if constexpr (kChannels > 0) {
    for (int i = 0; i < kPixels; ++i) bases[i] = pack_base<kChannels, kZeros>(work, image.window, pack, i);
  }
  for (int k = 0; k < kWidth; ++k) {
    int base;
    if constexpr (kChannels > 0) {  // one of two neighbours, by the channel with which the pack begins
      const int lower = k / kChannels, upper = lower + 1 < kPixels ? lower + 1 : lower;
      base = pack.channel + k % kChannels >= kChannels ? bases[upper] : bases[lower];
    } else {
      base = pack_base<kChannels, kZeros>(work, image.window, pack, (pack.channel + k) / channels);
    }
    numbers[k] = kZeros && (row < 0 || base == kOutside) ? 0.0F : static_cast<float>(line[base + k]);
  }
}

template <bool kZeros, int kWidth, int kChannels, typename Out>
HEADRACE_HOST_DEVICE void write_pack_nhwc(const WindowWork<Out>& work, const WindowImage<Out>& image,
                                          const WindowPack<kWidth, kChannels>& pack) {
  constexpr int kFactors = WindowPack<kWidth, kChannels>::kFactors;
  float numbers[kWidth];
  load_window<kZeros>(work, image, pack, numbers);
  Pack<Out, kWidth> out;
  for (int k = 0; k < kWidth; ++k) {
    numbers[k] = scaled(numbers[k], pack.scale[k % kFactors], pack.shift[k % kFactors]);
  }
  if (image.tone != nullptr) {
    for (int k = 0; k < kWidth; ++k) numbers[k] = toned(*image.tone, numbers[k]);
  }
  for (int k = 0; k < kWidth; ++k) out.values[k] = element_of<Out>(numbers[k]);
  store_pack(image.out + pack.first, out);
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

// Returns the numbers that a thread writes at once, channels last: 16 bytes if lines are whole packs.
template <typename Out>
int window_width(const WindowWork<Out>& work) {
  constexpr int kWidth = kPackWidth<Out>;
  const bool aligned = reinterpret_cast<std::uintptr_t>(work.out) % sizeof(Pack<Out, kWidth>) == 0;
  return aligned && std::int64_t{work.out_width} * work.channels % kWidth == 0 ? kWidth : 1;
}

// Blocks along y take pieces of an image, one item a thread, and blocks along x images; grid strides cover the
// rest.
struct WindowGrid {
  std::int64_t items = 0;  // of an image: packs, or pixels if the channels come first
  unsigned int x = 0, y = 0;
};

template <typename Out>
WindowGrid window_grid(const WindowWork<Out>& work, ImageLayout layout) {
  constexpr std::int64_t kMaxPieces = 4096,
                         kWave = 132 * 12;  // blocks of 40 registers a thread that an H100 holds
  const std::int64_t pixels = static_cast<std::int64_t>(work.out_height) * work.out_width;
  const std::int64_t items =
      layout == ImageLayout::kChannelsLast ? pixels * work.channels / window_width(work) : pixels;
  const std::int64_t pieces = std::min((items + kWindowThreads - 1) / kWindowThreads, kMaxPieces);
  const std::int64_t images = pieces > 0 ? std::max<std::int64_t>(kWave / pieces, 1) : 1;
  return {.items = items,
          .x = static_cast<unsigned int>(std::min(work.images, images)),
          .y = static_cast<unsigned int>(pieces)};
}

// A thread's place in the grid.
struct WindowThread {
  unsigned int x, y;    // its block
  unsigned int thread;  // in the block
  unsigned int blocks_x, blocks_y;
};

// Calls function(item) for the items of a thread.
template <typename Function>
HEADRACE_HOST_DEVICE void each_window_item(const WindowThread& at, std::int64_t items, const Function& function) {
  HEADRACE_ROLLED
  for (std::int64_t i = static_cast<std::int64_t>(at.y) * kWindowThreads + at.thread; i < items;
       i += static_cast<std::int64_t>(at.blocks_y) * kWindowThreads) {
    function(static_cast<int>(i));
  }
}

// Calls function(image) for the results of a thread. The next one's choice is read before this one is made.
template <typename Out, typename Function>
HEADRACE_HOST_DEVICE void each_window_image(const WindowWork<Out>& work, const WindowThread& at,
                                            const Function& function) {
  if (at.x >= work.images) return;
  WindowChoice next = window_choice(work, at.x);
  HEADRACE_ROLLED
  for (std::int64_t n = at.x; n < work.images; n += at.blocks_x) {
    const WindowChoice choice = next;
    if (n + at.blocks_x < work.images) next = window_choice(work, n + at.blocks_x);
    function(window_image(work, n, choice));
  }
}

template <int kWidth, int kChannels, bool kZeros, typename Out>
HEADRACE_HOST_DEVICE void run_windows_nhwc(const WindowWork<Out>& work, const WindowThread& at) {
  const std::int64_t packs = static_cast<std::int64_t>(work.out_height) * work.out_width * work.channels / kWidth;
  each_window_item(at, packs, [&](int item) {
    const auto pack = window_pack<kWidth, kChannels>(work, item);
    each_window_image(work, at,
                      [&](const WindowImage<Out>& image) { write_pack_nhwc<kZeros>(work, image, pack); });
  });
}

template <typename Out>
HEADRACE_HOST_DEVICE void run_windows_nchw(const WindowWork<Out>& work, const WindowThread& at) {
  each_window_item(at, static_cast<std::int64_t>(work.out_height) * work.out_width, [&](int item) {
    each_window_image(work, at, [&](const WindowImage<Out>& image) { write_item_nchw(work, image, item); });
  });
}

// Calls function(width, channels, zeros), integral_constants, with what run_windows_nhwc() takes. Packs of
// three channels without a border of zeros have code of their own.
template <typename Out, typename Function>
void by_window_pack(const WindowWork<Out>& work, const Function& function) {
  constexpr std::integral_constant<int, 3> kThree;
  by_width<kPackWidth<Out>>(window_width(work) > 1, [&](auto width) {
    if (work.channels != 3) return function(width, std::integral_constant<int, 0>{}, std::true_type{});
    if constexpr (width() > 1) {
      if (work.pad == 0 || work.border == PixelBorder::kReflect) return function(width, kThree, std::false_type{});
    }
    function(width, kThree, std::true_type{});
  });
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
