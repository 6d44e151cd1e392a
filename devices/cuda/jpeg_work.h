// From a JPEG's coefficients to pixels, as libjpeg-turbo's vector code (SSE2, AVX2) computes them, bit for bit:
// for GPUs, and for tests' twin on the host. Private to the CUDA backend.
//
// Sources: libjpeg-turbo's "islow" inverse DCT after Loeffler, Ligtenberg and Moschytz (ICASSP 1989), its "fancy"
// upsampling (triangle filters), and JFIF's colours. All of it is integer arithmetic. Dequantised coefficients and
// the first sums of the DCT are 16 bits, which only a damaged or hostile file exceeds: its pixels are the
// library's, too.
#pragma once

#include <cstdint>

#include "headrace/devices/cuda/element.h"

namespace headrace::cuda::jpeg {

inline constexpr int kBlockSide = 8, kBlockValues = 64;

HEADRACE_HOST_DEVICE std::int16_t wrapped(int value) { return static_cast<std::int16_t>(value); }
HEADRACE_HOST_DEVICE int saturated(int value, int low, int high) {
  return value < low ? low : value > high ? high : value;
}
HEADRACE_HOST_DEVICE int saturated16(int value) { return saturated(value, -32768, 32767); }

// One dimension of the inverse DCT: in[i] becomes the sums of which out[i] is the rounded quotient by 2^kShift.
template <int kShift>
HEADRACE_HOST_DEVICE void transform_line(const std::int16_t (&in)[kBlockSide], std::int16_t (&out)[kBlockSide]) {
  constexpr int kBits = 13;  // of the constants' fractions
  constexpr int k0298 = 2446, k0390 = 3196, k0541 = 4433, k0765 = 6270, k0899 = 7373, k1175 = 9633, k1501 = 12299,
                k1847 = 15137, k1961 = 16069, k2053 = 16819, k2562 = 20995, k3072 = 25172;
  // The even part.
  const int sum = wrapped(in[0] + in[4]) * (1 << kBits), difference = wrapped(in[0] - in[4]) * (1 << kBits);
  const int even2 = in[2] * k0541 + in[6] * (k0541 - k1847), even3 = in[2] * (k0541 + k0765) + in[6] * k0541;
  const int even[4] = {sum + even3, difference + even2, difference - even2, sum - even3};
  // The odd part.
  const int z3 = wrapped(in[7] + in[3]), z4 = wrapped(in[5] + in[1]);
  const int both3 = z3 * (k1175 - k1961) + z4 * k1175, both4 = z3 * k1175 + z4 * (k1175 - k0390);
  const int odd[4] = {
      in[7] * -k0899 + in[1] * (k1501 - k0899) + both4, in[5] * -k2562 + in[3] * (k3072 - k2562) + both3,
      in[5] * (k2053 - k2562) + in[3] * -k2562 + both4, in[7] * (k0298 - k0899) + in[1] * -k0899 + both3};
  constexpr int kHalf = 1 << (kShift - 1);
  for (int i = 0; i < 4; ++i) {
    out[i] = static_cast<std::int16_t>(saturated16((even[i] + odd[i] + kHalf) >> kShift));
    out[7 - i] = static_cast<std::int16_t>(saturated16((even[i] - odd[i] + kHalf) >> kShift));
  }
}

// Writes the 8 x 8 samples of a block of quantised coefficients, rows `stride` bytes apart.
HEADRACE_HOST_DEVICE void inverse_dct(const std::int16_t* coefficients, const std::uint16_t* quantizers,
                                      std::uint8_t* samples, std::int64_t stride) {
  std::int16_t columns[kBlockSide][kBlockSide];  // [column][row]
  bool flat = true;                              // no coefficient below the first row
  for (int i = kBlockSide; i < kBlockValues; ++i) flat = flat && coefficients[i] == 0;
  for (int x = 0; x < kBlockSide; ++x) {
    std::int16_t in[kBlockSide];
    for (int y = 0; y < kBlockSide; ++y) {
      const int at = y * kBlockSide + x;
      in[y] = wrapped(coefficients[at] * wrapped(quantizers[at]));
    }
    if (!flat) {
      transform_line<11>(in, columns[x]);
      continue;
    }
    for (std::int16_t& value : columns[x]) value = wrapped(in[0] * 4);
  }
  for (int y = 0; y < kBlockSide; ++y) {
    std::int16_t in[kBlockSide], out[kBlockSide];
    for (int x = 0; x < kBlockSide; ++x) in[x] = columns[x][y];
    transform_line<18>(in, out);
    for (int x = 0; x < kBlockSide; ++x) {
      samples[y * stride + x] = static_cast<std::uint8_t>(saturated(out[x], -128, 127) + 128);
    }
  }
}

// The samples of a component, or those around a window: they belong to the image, without what fills the last
// blocks.
struct Plane {
  const std::uint8_t* samples;
  std::int64_t stride;
  int height, width;      // of the component
  int down, across;       // pixels of the image a sample: 1 or 2, across also 4
  int top = 0, left = 0;  // of the first of `samples`

  HEADRACE_HOST_DEVICE int at(int y, int x) const {
    return samples[(saturated(y, 0, height - 1) - top) * stride + saturated(x, 0, width - 1) - left];
  }
  // Returns the value at a pixel of the image.
  HEADRACE_HOST_DEVICE int value(int y, int x) const {
    const bool fancy = width > 2 && across == 2;
    if (down == 1) return fancy ? across_row(y, x) : at(y, x / across);
    if (across == 1) return (3 * at(y / 2, x) + at(neighbour(y), x) + 1 + y % 2) >> 2;
    return fancy ? both(y, x) : at(y / 2, x / across);
  }

 private:
  // Returns the sample on the pixel's side of its own.
  HEADRACE_HOST_DEVICE static int neighbour(int pixel) { return pixel / 2 + (pixel % 2 == 0 ? -1 : 1); }
  HEADRACE_HOST_DEVICE bool at_edge(int x) const { return x == 0 || x == 2 * width - 1; }

  HEADRACE_HOST_DEVICE int across_row(int y, int x) const {
    if (at_edge(x)) return at(y, x / 2);
    return (3 * at(y, x / 2) + at(y, neighbour(x)) + 1 + x % 2) >> 2;
  }
  HEADRACE_HOST_DEVICE int both(int y, int x) const {
    const auto column = [&](int at_x) { return 3 * at(y / 2, at_x) + at(neighbour(y), at_x); };
    const int rounding = x % 2 == 0 ? 8 : 7;
    if (at_edge(x)) return (4 * column(x / 2) + rounding) >> 4;
    return (3 * column(x / 2) + column(neighbour(x)) + rounding) >> 4;
  }
};

struct Rgb {
  std::uint8_t red, green, blue;
};

HEADRACE_HOST_DEVICE Rgb from_ycc(int y, int cb, int cr) {
  constexpr int kBits = 16, kHalf = 1 << (kBits - 1);
  constexpr int kRed = 91881, kBlue = 116130, kGreenCb = 22554, kGreenCr = 46802;  // 1.402, 1.772, .34414, .71414
  const int b = cb - 128, r = cr - 128;
  const auto level = [](int value) { return static_cast<std::uint8_t>(saturated(value, 0, 255)); };
  return {level(y + ((kRed * r + kHalf) >> kBits)), level(y + ((-kGreenCb * b - kGreenCr * r + kHalf) >> kBits)),
          level(y + ((kBlue * b + kHalf) >> kBits))};
}

}  // namespace headrace::cuda::jpeg
