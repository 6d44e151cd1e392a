// Convolutions of 3 x 3 windows over 24 channels with 64 outputs, padded by a pixel, for tensor cores: cuDNN's
// kernels take 32 or 64 channels at a time, and compute products of zeros for those that are missing. Plain code
// over a Warp: the GPU's (tensor_core.cuh), or tests' model of its instructions (tests/support/model_warp.h).
// Private to the CUDA backend.
//
// A block works on a band of lines of an image. In shared memory a band of x has a border of one pixel, and the
// nine 16-byte chunks of a window's line are neighbours. Neighbouring pixels of x are 48 bytes apart, so that a
// matrix of 8 x 8 values, one row of 16 bytes a pixel, lies in different banks; those of y are 128 bytes apart,
// and their chunks are permuted instead (output_place()).
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/devices/cuda/element.h"

namespace headrace::cuda::narrow {

inline constexpr int kChannels = 24, kOutputs = 64;
inline constexpr int kChunkValues = 8, kChunkBytes = 16;
inline constexpr int kPixelChunks = kChannels / kChunkValues;       // 3
inline constexpr int kLineChunks = 3 * kPixelChunks;                // 9: of a window
inline constexpr int kWindowChunks = 3 * kLineChunks;               // 27
inline constexpr int kWindowValues = kWindowChunks * kChunkValues;  // 216
inline constexpr int kOutputChunks = kOutputs / kChunkValues;       // 8
inline constexpr int kPixelBytes = kPixelChunks * kChunkBytes, kOutputBytes = kOutputChunks * kChunkBytes;
inline constexpr int kTile = 16;  // pixels of a product: rows, or values that are added

// A band of lines of an image of x or y.
struct Band {
  std::int64_t image;
  int height, width;  // of the image
  int first, lines;

  HEADRACE_HOST_DEVICE int pixels() const { return lines * width; }
  HEADRACE_HOST_DEVICE int tiles() const { return (pixels() + kTile - 1) / kTile; }
  // Returns the number of the band's first pixel in the batch.
  HEADRACE_HOST_DEVICE std::int64_t first_pixel() const {
    return (image * height + first) * static_cast<std::int64_t>(width);
  }
  HEADRACE_HOST_DEVICE int line_bytes() const { return (width + 2) * kPixelBytes; }
  // Returns the offset of the top left pixel of a pixel's window in a band of x; the last one's for pixels beyond
  // it.
  HEADRACE_HOST_DEVICE int corner(int pixel) const {
    const int inside = pixel < pixels() ? pixel : pixels() - 1, line = inside / width;
    return line * line_bytes() + (inside - line * width) * kPixelBytes;
  }
};

// Images (height, width), each in bands of `band_lines` lines.
struct Bands {
  std::int64_t images;
  int height, width, band_lines;

  HEADRACE_HOST_DEVICE int of_image() const { return (height + band_lines - 1) / band_lines; }
  HEADRACE_HOST_DEVICE std::int64_t count() const { return images * of_image(); }
  HEADRACE_HOST_DEVICE Band band(std::int64_t number) const {
    const std::int64_t image = number / of_image();
    const int first = static_cast<int>(number - image * of_image()) * band_lines, left = height - first;
    return {image, height, width, first, left < band_lines ? left : band_lines};
  }
};

// Returns the lines of a band, at most `max_lines`, that divide `height` into as few bands of nearly equal size as
// possible. With unequal ones, a block that takes every other band would get only the larger or only the smaller.
constexpr int even_lines(int height, int max_lines) noexcept {
  const int bands = (height + max_lines - 1) / max_lines;
  return (height + bands - 1) / bands;
}

// Calls copy(offset, from) for the thread's 16-byte chunks of the band with its border, `pixel_chunks` a pixel.
// `from` is null where there is no pixel; place(pixel, chunk) is an offset, the pixels being those of the band
// with border.
template <typename Place, typename Copy>
HEADRACE_HOST_DEVICE void load_bordered(const Band& band, const BFloat16* images, int pixel_chunks, int thread,
                                        int threads, const Place& place, const Copy& copy) {
  const int wide = band.width + 2;
  for (int i = thread; i < (band.lines + 2) * wide * pixel_chunks; i += threads) {
    const int pixel = i / pixel_chunks, chunk = i - pixel * pixel_chunks;
    const int line = pixel / wide, x = pixel - line * wide - 1, y = band.first + line - 1;
    const bool inside = y >= 0 && y < band.height && x >= 0 && x < band.width;
    const std::int64_t at = (band.image * band.height + y) * static_cast<std::int64_t>(band.width) + x;
    copy(place(pixel, chunk), inside ? images + (at * pixel_chunks + chunk) * kChunkValues : nullptr);
  }
}

HEADRACE_HOST_DEVICE int input_place(int pixel, int chunk) { return pixel * kPixelBytes + chunk * kChunkBytes; }

// Returns the offset of a chunk of a pixel of y: those of eight neighbours lie in different banks.
HEADRACE_HOST_DEVICE int output_place(int pixel, int chunk) {
  return pixel * kOutputBytes + ((chunk ^ (pixel % kOutputChunks)) * kChunkBytes);
}

// y = x * weights. A block has four warps: two side by side with 32 outputs each, whose weights they keep in
// registers.
struct Forward {
  static constexpr int kWarps = 4, kThreads = 32 * kWarps;
  static constexpr int kOutputTiles = 4;            // of eight outputs, a warp
  static constexpr int kSteps = kWindowChunks / 2;  // of 16 values; one of 8 is left

  const BFloat16* x;
  const BFloat16* weights;
  BFloat16* y;
  Bands bands;

  static std::size_t shared_bytes(int width, int band_lines) {
    return static_cast<std::size_t>(band_lines + 2) * static_cast<std::size_t>(width + 2) * kPixelBytes;
  }

  template <typename Copy>
  HEADRACE_HOST_DEVICE void load(const Band& band, int thread, const Copy& copy) const {
    load_bordered(band, x, kPixelChunks, thread, kThreads, input_place, copy);
  }

  // The weights of a warp's outputs. Tile t has in column j the output 8 (j / 2) + 2 t + j % 2, so that a lane's
  // results of a pixel are eight neighbours.
  template <typename Warp>
  struct Weights {
    typename Warp::template Words<2> steps[kSteps][kOutputTiles];
    typename Warp::template Words<1> last[kOutputTiles];
  };
  template <typename Warp>
  HEADRACE_HOST_DEVICE void fetch(Warp& warp, int number, Weights<Warp>& own) const {
    HEADRACE_UNROLLED(kOutputTiles)
    for (int t = 0; t < kOutputTiles; ++t) {
      const auto row = [&](int lane) {
        const int column = lane / 4;
        const int output = number % 2 * (kOutputs / 2) + 8 * (column / 2) + 2 * t + column % 2;
        return weights + output * kWindowValues + 2 * (lane % 4);
      };
      HEADRACE_UNROLLED(kSteps)
      for (int s = 0; s < kSteps; ++s) {
        warp.template fetch<0>(own.steps[s][t], [&](int lane) { return row(lane) + 16 * s; });
        warp.template fetch<1>(own.steps[s][t], [&](int lane) { return row(lane) + 16 * s + 8; });
      }
      warp.template fetch<0>(own.last[t], [&](int lane) { return row(lane) + 16 * kSteps; });
    }
  }

  template <typename Warp>
  HEADRACE_HOST_DEVICE void run(Warp& warp, int number, const Band& band, const Weights<Warp>& own) const {
    for (int tile = number / 2; tile < band.tiles(); tile += kWarps / 2) {
      typename Warp::Sums sums[kOutputTiles];
      multiply(warp, band, tile, own, sums);
      warp.each_lane([&](int lane) { store(band, tile, number % 2, lane, sums); });
    }
  }

 private:
  template <typename Warp>
  HEADRACE_HOST_DEVICE void multiply(Warp& warp, const Band& band, int tile, const Weights<Warp>& own,
                                     typename Warp::Sums (&sums)[kOutputTiles]) const {
    const auto corners = warp.of_lanes([&](int lane) { return band.corner(kTile * tile + lane % kTile); });
    // From a window's line to the next, less the chunks of a line.
    const int skip = band.line_bytes() - kLineChunks * kChunkBytes;
    HEADRACE_UNROLLED(kSteps)
    for (int s = 0; s < kSteps; ++s) {
      typename Warp::template Words<4> a;
      warp.load(a, [&](int lane) {
        const int upper = lane / kTile;  // the second chunk of the step
        const int chunk = 2 * s + upper;
        const bool next_line = (2 * s + 1) % kLineChunks == 0 && upper == 1;
        return corners.of(lane) + chunk * kChunkBytes + (2 * s / kLineChunks + (next_line ? 1 : 0)) * skip;
      });
      HEADRACE_UNROLLED(kOutputTiles)
      for (int t = 0; t < kOutputTiles; ++t) warp.template multiply_add<0>(sums[t], a, own.steps[s][t]);
    }
    typename Warp::template Words<2> a;
    warp.load(a, [&](int lane) { return corners.of(lane) + 2 * kSteps * kChunkBytes + 2 * skip; });
    HEADRACE_UNROLLED(kOutputTiles)
    for (int t = 0; t < kOutputTiles; ++t) warp.multiply_add(sums[t], a, own.last[t]);
  }

  template <typename Sums>
  HEADRACE_HOST_DEVICE void store(const Band& band, int tile, int half, int lane,
                                  const Sums (&sums)[kOutputTiles]) const {
    HEADRACE_UNROLLED(2)
    for (int r = 0; r < 2; ++r) {
      const int pixel = kTile * tile + 8 * r + lane / 4;
      if (pixel >= band.pixels()) continue;
      Pack<BFloat16, 8> pack;
      HEADRACE_UNROLLED(kOutputTiles)
      for (int t = 0; t < kOutputTiles; ++t) {
        pack.values[2 * t] = element_of<BFloat16>(sums[t].of(lane)[2 * r]);
        pack.values[2 * t + 1] = element_of<BFloat16>(sums[t].of(lane)[2 * r + 1]);
      }
      store_pack(y + (band.first_pixel() + pixel) * kOutputs + half * (kOutputs / 2) + 8 * (lane % 4), pack);
    }
  }
};

// dweights = the sum over pixels of dy times the window of x. A block's six warps have a line of the window and
// half of the outputs each; it adds all of its bands, and leaves a partial result (outputs, window) that Finish
// adds. The number of blocks is the same on every GPU, and with it the order of sums.
struct WeightGradient {
  static constexpr int kWarps = 6, kThreads = 32 * kWarps;
  static constexpr int kBlocks = 264;                      // two for each multiprocessor of an H100 or H200
  static constexpr int kOutputTiles = 2, kValueTiles = 9;  // of 16 outputs, of 8 values of the window, a warp

  const BFloat16* x;
  const BFloat16* dy;
  float* partial;  // (blocks, outputs, window)
  Bands bands;

  static std::size_t outputs_bytes(int width, int band_lines) {
    const int tiles = (band_lines * width + kTile - 1) / kTile;
    return static_cast<std::size_t>(tiles) * kTile * kOutputBytes;
  }
  static std::size_t shared_bytes(int width, int band_lines) {
    return outputs_bytes(width, band_lines) + Forward::shared_bytes(width, band_lines);
  }
  // The offset of x in shared memory, after dy.
  HEADRACE_HOST_DEVICE int input_base() const {
    return (bands.band_lines * bands.width + kTile - 1) / kTile * kTile * kOutputBytes;
  }

  template <typename Copy>
  HEADRACE_HOST_DEVICE void load(const Band& band, int thread, const Copy& copy) const {
    const int base = input_base();
    load_bordered(
        band, x, kPixelChunks, thread, kThreads,
        [&](int pixel, int chunk) { return base + input_place(pixel, chunk); }, copy);
    const BFloat16* from = dy + band.first_pixel() * kOutputs;
    for (int i = thread; i < band.tiles() * kTile * kOutputChunks; i += kThreads) {
      const int pixel = i / kOutputChunks;
      copy(output_place(pixel, i % kOutputChunks), pixel < band.pixels() ? from + i * kChunkValues : nullptr);
    }
  }

  template <typename Warp>
  using Sums = typename Warp::Sums[kOutputTiles][kValueTiles];

  template <typename Warp>
  HEADRACE_HOST_DEVICE void run(Warp& warp, int number, const Band& band, Sums<Warp>& sums) const {
    const int window_line = input_base() + number % 3 * band.line_bytes(), half = number / 3;
    HEADRACE_ROLLED
    for (int tile = 0; tile < band.tiles(); ++tile) {
      typename Warp::template Words<4> a[kOutputTiles];
      HEADRACE_UNROLLED(kOutputTiles)
      for (int m = 0; m < kOutputTiles; ++m) {
        warp.load_transposed(a[m], [&](int lane) {
          const int matrix = lane / 8, pixel = kTile * tile + 8 * (matrix / 2) + lane % 8;
          return output_place(pixel, kOutputChunks / 2 * half + 2 * m + matrix % 2);
        });
      }
      const auto corners = warp.of_lanes(
          [&](int lane) { return window_line + band.corner(kTile * tile + 8 * (lane / 8 % 2) + lane % 8); });
      HEADRACE_UNROLLED(kValueTiles / 2)
      for (int pair = 0; pair < kValueTiles / 2; ++pair) {
        typename Warp::template Words<4> b;
        warp.load_transposed(b, [&](int lane) { return corners.of(lane) + (2 * pair + lane / 16) * kChunkBytes; });
        HEADRACE_UNROLLED(kOutputTiles)
        for (int m = 0; m < kOutputTiles; ++m) {
          warp.template multiply_add<0>(sums[m][2 * pair], a[m], b);
          warp.template multiply_add<2>(sums[m][2 * pair + 1], a[m], b);
        }
      }
      typename Warp::template Words<2> b;
      warp.load_transposed(b, [&](int lane) { return corners.of(lane) + (kValueTiles - 1) * kChunkBytes; });
      HEADRACE_UNROLLED(kOutputTiles)
      for (int m = 0; m < kOutputTiles; ++m) warp.template multiply_add<0>(sums[m][kValueTiles - 1], a[m], b);
    }
  }

  template <typename Warp>
  HEADRACE_HOST_DEVICE void store(Warp& warp, int number, std::int64_t block, const Sums<Warp>& sums) const {
    float* own = partial + block * kOutputs * kWindowValues + number % 3 * kLineChunks * kChunkValues;
    warp.each_lane([&](int lane) {
      HEADRACE_UNROLLED(kOutputTiles)
      for (int m = 0; m < kOutputTiles; ++m) {
        HEADRACE_UNROLLED(kValueTiles)
        for (int n = 0; n < kValueTiles; ++n) {
          HEADRACE_UNROLLED(4)
          for (int r = 0; r < 4; ++r) {
            const int output = number / 3 * (kOutputs / 2) + 16 * m + 8 * (r / 2) + lane / 4;
            own[output * kWindowValues + 8 * n + 2 * (lane % 4) + r % 2] = sums[m][n].of(lane)[r];
          }
        }
      }
    });
  }
};

// dx = dy * the weights turned around. A block's four warps have four tiles of pixels each, and share the weights.
struct InputGradient {
  static constexpr int kWarps = 4, kThreads = 32 * kWarps;
  static constexpr int kTiles = 4;                            // a warp
  static constexpr int kMaxPixels = kWarps * kTiles * kTile;  // of a band
  static constexpr int kRowBytes = kWindowValues * 2;  // of an output's weights: rows lie in different banks
  static constexpr int kBase = kOutputs * kRowBytes;   // the offset of dy in shared memory, after the weights

  const BFloat16* dy;
  const BFloat16* weights;
  BFloat16* dx;
  Bands bands;

  static std::size_t shared_bytes(int width, int band_lines) {
    return kBase + static_cast<std::size_t>(band_lines + 2) * static_cast<std::size_t>(width + 2) * kOutputBytes;
  }

  template <typename Copy>
  HEADRACE_HOST_DEVICE void load(const Band& band, int thread, const Copy& copy) const {
    for (int i = thread; i < kOutputs * kWindowChunks; i += kThreads)
      copy(i * kChunkBytes, weights + i * kChunkValues);
    load_bordered(
        band, dy, kOutputChunks, thread, kThreads,
        [](int pixel, int chunk) { return kBase + output_place(pixel, chunk); }, copy);
  }

  template <typename Warp>
  HEADRACE_HOST_DEVICE void run(Warp& warp, int number, const Band& band) const {
    const int begin = number * kTiles * kTile;
    if (begin >= band.pixels()) return;
    typename Warp::template OfLanes<int>
        last[kTiles];  // the pixel, in the band with border, of the window's last tap
    HEADRACE_UNROLLED(kTiles)
    for (int m = 0; m < kTiles; ++m) {
      last[m] = warp.of_lanes([&](int lane) {
        const int pixel = begin + kTile * m + lane % kTile;
        const int inside = pixel < band.pixels() ? pixel : band.pixels() - 1, line = inside / band.width;
        return (line + 2) * (band.width + 2) + inside - line * band.width + 2;
      });
    }
    typename Warp::Sums sums[kTiles][kPixelChunks];
    HEADRACE_ROLLED
    for (int line = 0; line < 3; ++line) {
      HEADRACE_UNROLLED(3)
      for (int column = 0; column < 3; ++column) {
        add_tap(warp, last, line * (band.width + 2) + column, (3 * line + column) * kPixelBytes, sums);
      }
    }
    warp.each_lane([&](int lane) { store(band, begin, lane, sums); });
  }

 private:
  // `back`: pixels from the window's last tap to this one; `tap`: its offset among an output's weights.
  template <typename Warp>
  HEADRACE_HOST_DEVICE void add_tap(Warp& warp, const typename Warp::template OfLanes<int> (&last)[kTiles],
                                    int back, int tap, typename Warp::Sums (&sums)[kTiles][kPixelChunks]) const {
    HEADRACE_UNROLLED(kOutputs / 16)
    for (int s = 0; s < kOutputs / 16; ++s) {
      typename Warp::template Words<4> b01;
      typename Warp::template Words<2> b2;
      const auto row = [&](int lane) { return (16 * s + 8 * (lane / 8 % 2) + lane % 8) * kRowBytes + tap; };
      warp.load_transposed(b01, [&](int lane) { return row(lane) + lane / 16 * kChunkBytes; });
      warp.load_transposed(b2, [&](int lane) { return row(lane) + 2 * kChunkBytes; });
      HEADRACE_UNROLLED(kTiles)
      for (int m = 0; m < kTiles; ++m) {
        typename Warp::template Words<4> a;
        warp.load(a,
                  [&](int lane) { return kBase + output_place(last[m].of(lane) - back, 2 * s + lane / kTile); });
        warp.template multiply_add<0>(sums[m][0], a, b01);
        warp.template multiply_add<2>(sums[m][1], a, b01);
        warp.template multiply_add<0>(sums[m][2], a, b2);
      }
    }
  }

  template <typename Sums>
  HEADRACE_HOST_DEVICE void store(const Band& band, int begin, int lane,
                                  const Sums (&sums)[kTiles][kPixelChunks]) const {
    HEADRACE_UNROLLED(kTiles)
    for (int m = 0; m < kTiles; ++m) {
      HEADRACE_UNROLLED(2)
      for (int r = 0; r < 2; ++r) {
        const int pixel = begin + kTile * m + 8 * r + lane / 4;
        if (pixel >= band.pixels()) continue;
        BFloat16* to = dx + (band.first_pixel() + pixel) * kChannels + 2 * (lane % 4);
        HEADRACE_UNROLLED(kPixelChunks)
        for (int t = 0; t < kPixelChunks; ++t) {
          const float(&values)[4] = sums[m][t].of(lane);
          store_pack(to + 8 * t, Pack<BFloat16, 2>{element_of<BFloat16>(values[2 * r]),
                                                   element_of<BFloat16>(values[2 * r + 1])});
        }
      }
    }
  }
};

// Adds the partial results of WeightGradient. A block has neighbouring elements; each of its lanes adds some of
// the parts, the first the lanes' sums, in order.
struct Finish {
  static constexpr int kElements = 32, kLanes = 32;
  static constexpr int kBlocks = kOutputs * kWindowValues / kElements;

  const float* partial;
  float* dweights;

  HEADRACE_HOST_DEVICE float sum(int element, int lane) const {
    float sum = 0;
    HEADRACE_UNROLLED(9)
    for (int part = lane; part < WeightGradient::kBlocks; part += kLanes) {
      sum += partial[static_cast<std::int64_t>(part) * kOutputs * kWindowValues + element];
    }
    return sum;
  }
};

}  // namespace headrace::cuda::narrow
