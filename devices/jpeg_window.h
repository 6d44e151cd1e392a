// A window of a JPEG as a batch's row takes it to a device that decodes it: entropy-coded data in place of pixels.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// One axis of a resize. Each pixel of the result is a weighted sum of `taps` of the image's pixels.
struct JpegAxis {
  std::int32_t first = 0, used = 0;  // the image's pixels [first, first + used) that the result needs
  std::int32_t taps = 0;
};

// Describes a row; lies beside it. All places are in bytes, those of what was sent from the row's beginning, also
// where it lies after all rows, and at addresses that are multiples of 4. The following were sent, at these
// places:
//   tables   JpegTables
//   starts   JpegInterval of each interval that is read: row of MCUs after row of MCUs
//   axes     of the vertical, then of the horizontal axis: the i32 number of the first tap of each pixel of the
//            result, counted from JpegAxis::first; the i16 weights of each pixel's taps; padding to 4 bytes
//   bits     the entropy-coded bits without stuffed zeros, up to `end`
// A device needs `scratch_bytes` of memory for it, from `scratch` on, and divides them as the last places say.
struct JpegWindow {
  std::int32_t coded = 0;                          // 0: the row holds pixels; nothing else counts
  std::int32_t mirrored = 0;                       // 1: the result's lines are from right to left
  std::int32_t height = 0, width = 0;              // of the image
  std::int32_t components = 0;                     // 1, or 3: Y, Cb and Cr
  std::int32_t down = 1, across = 1;               // pixels a sample of Cb and Cr: 1 or 2; across also 4
  std::int32_t first_row = 0, first_column = 0;    // of the MCUs that are decoded
  std::int32_t rows = 0, columns = 0;              // of them
  std::int32_t interval = 0;                       // MCUs from one start to the next
  std::int32_t first_interval = 0, intervals = 0;  // read of each row of MCUs
  JpegAxis vertical = {}, horizontal = {};
  std::int32_t tables = 0, starts = 0, axes = 0, bits = 0, end = 0;
  std::int32_t scratch = 0, scratch_bytes = 0;
  // Of `scratch_bytes` from `scratch` on, at multiples of 16. First the tables by which codes are looked up; then
  // the axes, blocks of i16 coefficients, of u8 samples, the used pixels in u8 (H, W, 3), and their sums for each
  // row of the result in FixedLevel (h, W, 3).
  std::int32_t weights = 0, coefficients = 0, samples = 0, colors = 0, levels = 0;

  // Returns the 8 x 8 blocks of a component, and of all before it.
  constexpr int luma_blocks() const noexcept { return rows * columns * down * across; }
  constexpr int blocks_before(int component) const noexcept {
    return component == 0 ? 0 : luma_blocks() + (component - 1) * rows * columns;
  }
  // Returns the bytes of an axis with so many results.
  static constexpr int axis_bytes(const JpegAxis& axis, int results) noexcept {
    return results * 4 + (results * axis.taps + 1) / 2 * 4;
  }
};
static_assert(std::has_unique_object_representations_v<JpegWindow>);

// Where an interval of MCUs begins, and the DC coefficients before it.
struct JpegInterval {
  std::uint32_t bit = 0;
  std::array<std::int16_t, 4> predictors{};
};

struct JpegTables {
  // ITU-T T.81, C.2: so many codewords of each length, and their symbols in order.
  struct Code {
    std::uint8_t counts[16] = {};
    std::uint8_t symbols[256] = {};
  };
  std::uint16_t quantizers[3][64] = {};  // of each component, row-major
  Code codes[4];                         // DC and AC of Y, DC and AC of Cb and Cr
  std::uint8_t order[64] = {};           // the row-major place of each coefficient in the order of the file
};
static_assert(sizeof(JpegTables) % 4 == 0);

}  // namespace headrace
