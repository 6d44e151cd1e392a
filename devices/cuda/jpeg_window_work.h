// Decodes windows of JPEGs in a batch's rows, in six steps of independent items: plain code, run by the GPU and,
// in tests, by the host. Private to the CUDA backend.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/devices/cuda/element.h"
#include "headrace/devices/cuda/jpeg_work.h"
#include "headrace/devices/input_kernels.h"

namespace headrace::cuda::jpeg {

// The rows of a launch: those from `first` on.
struct Rows {
  const JpegWindow* windows;
  std::uint8_t* pixels;
  std::byte* scratch;
  std::int64_t row_bytes;
  int height, width;  // of a row's pixels
  int first;
};

// One of them.
struct Row {
  const JpegWindow& window;
  std::uint8_t* pixels;
  std::byte* scratch;
  int height, width;  // of its pixels

  HEADRACE_HOST_DEVICE Row(const Rows& rows, int n)
      : window(rows.windows[n]),
        pixels(rows.pixels + n * rows.row_bytes),
        scratch(rows.scratch + window.scratch),
        height(rows.height),
        width(rows.width) {}

  template <typename T>
  HEADRACE_HOST_DEVICE const T* sent(int place) const {
    return reinterpret_cast<const T*>(pixels + place);
  }
  template <typename T>
  HEADRACE_HOST_DEVICE T* made(int place) const {
    return reinterpret_cast<T*>(scratch + place);
  }
  HEADRACE_HOST_DEVICE const JpegTables& tables() const { return *sent<JpegTables>(window.tables); }
  HEADRACE_HOST_DEVICE int axis_words() const {
    return (JpegWindow::axis_bytes(window.vertical, height) + JpegWindow::axis_bytes(window.horizontal, width)) /
           4;
  }
  HEADRACE_HOST_DEVICE int blocks() const { return window.blocks_before(window.components == 1 ? 1 : 3); }
  HEADRACE_HOST_DEVICE int down(int component) const { return component == 0 ? window.down : 1; }
  HEADRACE_HOST_DEVICE int across(int component) const { return component == 0 ? window.across : 1; }
};

// The symbols of a code by its next bits: the value, and above it the codeword's length; 0: a longer one.
inline constexpr int kLookupBits = 10, kLookups = 1 << kLookupBits, kCodes = 4;

// Returns the symbol of the codeword of at most `most` bits with which `bits`, of which there are `most`, begin; 0
// if there is none.
HEADRACE_HOST_DEVICE std::uint16_t symbol_of(const JpegTables::Code& code, unsigned bits, int most) {
  unsigned first = 0, place = 0;
  HEADRACE_ROLLED
  for (int length = 1; length <= most; ++length) {
    const unsigned count = code.counts[length - 1], number = (bits >> (most - length)) - first;
    if (number < count) return static_cast<std::uint16_t>(length << 8 | code.symbols[(place + number) % 256]);
    first = (first + count) << 1;
    place += count;
  }
  return 0;
}

// First: lays out what the others look up, since the row's memory is written by the last of them.
struct Prepare {
  HEADRACE_HOST_DEVICE static int items(const Row& row) { return kCodes * kLookups + row.axis_words(); }
  HEADRACE_HOST_DEVICE static void run(const Row& row, int item) {
    if (item < kCodes * kLookups) {
      const JpegTables::Code& code = row.tables().codes[item / kLookups];
      row.made<std::uint16_t>(0)[item] = symbol_of(code, static_cast<unsigned>(item % kLookups), kLookupBits);
    } else {
      const int word = item - kCodes * kLookups;
      row.made<std::uint32_t>(row.window.weights)[word] = row.sent<std::uint32_t>(row.window.axes)[word];
    }
  }
};

// A position in a row's bits. Beyond their end are zeros.
class BitReader {
 public:
  HEADRACE_HOST_DEVICE BitReader(const std::uint32_t* words, int count, std::uint32_t at)
      : words_(words), count_(count), next_(static_cast<int>(at / 32)) {
    buffer_ = std::uint64_t{next()} << 32;
    buffer_ = (buffer_ | next()) << at % 32;
    held_ = 64 - static_cast<int>(at % 32);
  }

  // Makes 33 bits or more available: a codeword and the bits of its value.
  HEADRACE_HOST_DEVICE void fill() {
    if (held_ > 32) return;
    buffer_ |= std::uint64_t{next()} << (32 - held_);
    held_ += 32;
  }
  HEADRACE_HOST_DEVICE unsigned peek(int bits) const { return static_cast<unsigned>(buffer_ >> (64 - bits)); }
  HEADRACE_HOST_DEVICE void skip(int bits) {
    buffer_ <<= bits;
    held_ -= bits;
  }
  // Takes a value of `size` bits (T.81, F.2.2.1, EXTEND).
  HEADRACE_HOST_DEVICE int value(int size) {
    if (size == 0) return 0;
    const int bits = static_cast<int>(peek(size));
    skip(size);
    return bits >> (size - 1) != 0 ? bits : bits - (1 << size) + 1;
  }

 private:
  HEADRACE_HOST_DEVICE std::uint32_t next() {
    const int at = next_++;
    if (static_cast<unsigned>(at) >= static_cast<unsigned>(count_)) return 0;
    const std::uint32_t word = words_[at];
    return word << 24 | (word & 0xFF00U) << 8 | (word >> 8 & 0xFF00U) | word >> 24;
  }

  const std::uint32_t* words_;
  int count_, next_;
  std::uint64_t buffer_;  // the next bits, the first in the highest place
  int held_;              // of them
};

// Second: reads the coefficients of an interval of MCUs.
struct ReadIntervals {
  HEADRACE_HOST_DEVICE static int items(const Row& row) { return row.window.rows * row.window.intervals; }

  HEADRACE_HOST_DEVICE static void run(const Row& row, int item) {
    const JpegWindow& window = row.window;
    const int mcu_row = item / window.intervals, begin = window.first_interval + item % window.intervals;
    const JpegInterval start = row.sent<JpegInterval>(window.starts)[item];
    BitReader bits(row.sent<std::uint32_t>(window.bits), (window.end - window.bits) / 4, start.bit);
    int predictors[3] = {start.predictors[0], start.predictors[1], start.predictors[2]};
    const int first = begin * window.interval, after = first + window.interval;
    const int last = window.first_column + window.columns;
    bool sound = true;  // an index that is not the file's leaves zeros, not what was here before
    HEADRACE_ROLLED
    for (int column = first; column < (after < last ? after : last); ++column) {
      sound = read_mcu(row, bits, predictors, mcu_row, column - window.first_column, sound);
    }
  }

 private:
  // Skips the MCU if its column, counted from the window's first one, is negative; makes it zero if it is not
  // `sound`. Returns whether it is.
  HEADRACE_HOST_DEVICE static bool read_mcu(const Row& row, BitReader& bits, int (&predictors)[3], int mcu_row,
                                            int column, bool sound) {
    HEADRACE_ROLLED
    for (int c = 0; c < row.window.components; ++c) {
      const int across = row.across(c), in_mcu = row.down(c) * across;
      HEADRACE_ROLLED
      for (int i = 0; i < in_mcu; ++i) {
        const int y = mcu_row * row.down(c) + i / across, x = column * across + i % across;
        const int block = row.window.blocks_before(c) + y * row.window.columns * across + x;
        std::int16_t* const to = row.made<std::int16_t>(row.window.coefficients) + block * kBlockValues;
        if (column >= 0) {
          for (int k = 0; k < kBlockValues; k += 8) store_pack<8>(to + k, Pack<std::int16_t, 8>{});
        }
        sound = sound && read_block(row, bits, c == 0 ? 0 : 2, predictors[c], column < 0 ? nullptr : to);
      }
    }
    return sound;
  }

  HEADRACE_HOST_DEVICE static bool read_block(const Row& row, BitReader& bits, int code, int& predictor,
                                              std::int16_t* to) {
    unsigned symbol = 0;
    if (!read_symbol(row, bits, code, symbol)) return false;
    predictor += bits.value(static_cast<int>(symbol & 15));
    if (to != nullptr) to[0] = static_cast<std::int16_t>(predictor);
    HEADRACE_ROLLED
    for (int k = 1; k < kBlockValues; ++k) {
      if (!read_symbol(row, bits, code + 1, symbol)) return false;
      const int run = static_cast<int>(symbol >> 4), size = static_cast<int>(symbol & 15);
      if (size == 0 && run != 15) return true;  // the rest is zero
      k += run;
      const int value = bits.value(size);
      if (k >= kBlockValues) return false;
      if (to != nullptr && size != 0) to[row.tables().order[k]] = static_cast<std::int16_t>(value);
    }
    return true;
  }

  HEADRACE_HOST_DEVICE static bool read_symbol(const Row& row, BitReader& bits, int code, unsigned& symbol) {
    bits.fill();
    unsigned found = row.made<std::uint16_t>(0)[code * kLookups + static_cast<int>(bits.peek(kLookupBits))];
    if (found == 0) found = symbol_of(row.tables().codes[code], bits.peek(16), 16);
    bits.skip(static_cast<int>(found >> 8));
    symbol = found & 255;
    return found != 0;
  }
};

// Third: transforms a block to samples.
struct Transform {
  HEADRACE_HOST_DEVICE static int items(const Row& row) { return row.blocks(); }
  HEADRACE_HOST_DEVICE static void run(const Row& row, int item) {
    const JpegWindow& window = row.window;
    const int component = (item >= window.blocks_before(1)) + (item >= window.blocks_before(2));
    const int block = item - window.blocks_before(component), wide = window.columns * row.across(component);
    const int stride = wide * kBlockSide;
    std::uint8_t* const samples = row.made<std::uint8_t>(window.samples) +
                                  window.blocks_before(component) * kBlockValues +
                                  block / wide * kBlockSide * stride + block % wide * kBlockSide;
    std::int16_t coefficients[kBlockValues];
    const std::int16_t* const from = row.made<std::int16_t>(window.coefficients) + item * kBlockValues;
    for (int i = 0; i < kBlockValues; i += 8) {
      const Pack<std::int16_t, 8> eight = load_pack<8>(from + i);
      for (int k = 0; k < 8; ++k) coefficients[i + k] = eight.values[k];
    }
    inverse_dct(coefficients, row.tables().quantizers[component], samples, stride);
  }
};

// Fourth: upsamples and makes colours: an item is one of the image's pixels that the result needs.
struct Colors {
  HEADRACE_HOST_DEVICE static int items(const Row& row) {
    return row.window.vertical.used * row.window.horizontal.used;
  }
  HEADRACE_HOST_DEVICE static void run(const Row& row, int item) {
    const JpegWindow& window = row.window;
    const int y = window.vertical.first + item / window.horizontal.used;
    const int x = window.horizontal.first + item % window.horizontal.used;
    const int luma = plane(row, 0).value(y, x);
    const auto grey = static_cast<std::uint8_t>(luma);
    const Rgb pixel = window.components == 1
                          ? Rgb{grey, grey, grey}
                          : from_ycc(luma, plane(row, 1).value(y, x), plane(row, 2).value(y, x));
    std::uint8_t* const to = row.made<std::uint8_t>(window.colors) + 3 * item;
    to[0] = pixel.red;
    to[1] = pixel.green;
    to[2] = pixel.blue;
  }

 private:
  HEADRACE_HOST_DEVICE static Plane plane(const Row& row, int component) {
    const JpegWindow& window = row.window;
    const int down = component == 0 ? 1 : window.down, across = component == 0 ? 1 : window.across;
    const int high = kBlockSide * row.down(component), wide = kBlockSide * row.across(component);
    return {.samples = row.made<std::uint8_t>(window.samples) + window.blocks_before(component) * kBlockValues,
            .stride = window.columns * wide,
            .height = (window.height + down - 1) / down,
            .width = (window.width + across - 1) / across,
            .down = down,
            .across = across,
            .top = window.first_row * high,
            .left = window.first_column * wide};
  }
};

// One axis of the resize, as prepared.
struct Taps {
  const std::int32_t* first;
  const FixedWeight* weights;
  int count;

  HEADRACE_HOST_DEVICE Taps(const std::byte* at, const JpegAxis& axis, int results)
      : first(reinterpret_cast<const std::int32_t*>(at)),
        weights(reinterpret_cast<const FixedWeight*>(at + results * 4)),
        count(axis.taps) {}
};

// Fifth: sums vertically: an item is a column of the image in a row of the result.
struct BlendRows {
  HEADRACE_HOST_DEVICE static int items(const Row& row) { return row.height * row.window.horizontal.used; }
  HEADRACE_HOST_DEVICE static void run(const Row& row, int item) {
    const JpegWindow& window = row.window;
    const int wide = window.horizontal.used, y = item / wide, x = item % wide;
    const Taps taps(row.scratch + window.weights, window.vertical, row.height);
    const std::uint8_t* from = row.made<std::uint8_t>(window.colors) + 3 * (taps.first[y] * wide + x);
    std::int32_t sums[3] = {};
    HEADRACE_ROLLED
    for (int k = 0; k < taps.count; ++k, from += 3 * wide) {
      const int weight = taps.weights[y * taps.count + k];
      for (int c = 0; c < 3; ++c) sums[c] += fixed_product(from[c] << kLevelBits, weight);
    }
    FixedLevel* const to = row.made<FixedLevel>(window.levels) + 3 * item;
    for (int c = 0; c < 3; ++c) to[c] = to_fixed_level(sums[c]);
  }
};

// Sixth: sums horizontally: an item is a pixel of the result.
struct BlendPixels {
  HEADRACE_HOST_DEVICE static int items(const Row& row) { return row.height * row.width; }
  HEADRACE_HOST_DEVICE static void run(const Row& row, int item) {
    const JpegWindow& window = row.window;
    const int y = item / row.width, x = item % row.width;
    const std::byte* const axes = row.scratch + window.weights;
    const Taps taps(axes + JpegWindow::axis_bytes(window.vertical, row.height), window.horizontal, row.width);
    const FixedLevel* const from =
        row.made<FixedLevel>(window.levels) + 3 * (y * window.horizontal.used + taps.first[x]);
    std::int32_t sums[3] = {};
    HEADRACE_ROLLED
    for (int k = 0; k < taps.count; ++k) {
      const int weight = taps.weights[x * taps.count + k];
      for (int c = 0; c < 3; ++c) sums[c] += fixed_product(from[3 * k + c], weight);
    }
    const int to = window.mirrored != 0 ? item + row.width - 1 - 2 * x : item;
    for (int c = 0; c < 3; ++c) row.pixels[3 * to + c] = to_level(sums[c]);
  }
};

// Calls launch(step, rows, count, items) for each step of each stretch of rows whose scratch memory is side by
// side: `count` rows, none with more `items`.
template <typename Launch>
void for_each_launch(const JpegDecoding& decoding, const Launch& launch) {
  Rows rows{.windows = decoding.windows.as<const JpegWindow>(),
            .pixels = decoding.pixels.as<std::uint8_t>(),
            .scratch = decoding.scratch.as<std::byte>(),
            .row_bytes = decoding.pixels.shape.without_front().elements(),
            .height = static_cast<int>(decoding.pixels.shape[1]),
            .width = static_cast<int>(decoding.pixels.shape[2]),
            .first = 0};
  for (std::size_t begin = 0, end = 0; begin < decoding.rows.size(); begin = end) {
    std::int32_t used = 0;
    for (; end < decoding.rows.size(); ++end) {
      const JpegWindow& window = decoding.rows[end];
      if (window.coded == 0) continue;
      if (window.scratch < used) break;
      used = window.scratch + window.scratch_bytes;
    }
    if (used == 0) continue;
    rows.first = static_cast<int>(begin);
    Rows on_host = rows;
    on_host.windows = decoding.rows.data();
    const auto step = [&]<typename Step>(Step) {
      int items = 0;
      for (std::size_t n = begin; n < end; ++n) {
        if (decoding.rows[n].coded != 0) items = std::max(items, Step::items(Row(on_host, static_cast<int>(n))));
      }
      launch(Step{}, rows, static_cast<int>(end - begin), items);
    };
    step(Prepare{});
    step(ReadIntervals{});
    step(Transform{});
    step(Colors{});
    step(BlendRows{});
    step(BlendPixels{});
  }
}

// Runs the share of one of `threads` threads in a row.
template <typename Step>
HEADRACE_HOST_DEVICE void run_row(const Rows& rows, int n, int thread, int threads) {
  if (rows.windows[n].coded == 0) return;
  const Row row(rows, n);
  const int items = Step::items(row);
  for (int item = thread; item < items; item += threads) Step::run(row, item);
}

}  // namespace headrace::cuda::jpeg
