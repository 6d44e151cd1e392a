// The input work of a device that holds batches: bytes cross the bus and become floats there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/shape.h"
#include "headrace/devices/jpeg_window.h"
#include "headrace/devices/stream.h"
#include "headrace/devices/tensor.h"

namespace HEADRACE_API headrace {

// The part of a padded image that becomes an example: its origin in the padded image, and the direction in which
// its rows are read.
struct PixelWindow {
  std::int32_t top = 0, left = 0;
  std::int32_t mirrored = 0;  // 1: from right to left
};

// Applied to all numbers of an example after scaling: (x + shift) * gain.
struct PixelTone {
  float shift = 0, gain = 1;
};

enum class PixelBorder {
  kZero,
  kReflect,  // without repeating the edge
};

// All views are in the device's memory and contiguous.
struct PixelConversion {
  TensorView pixels;        // u8 (N, H, W, C), or (M, H, W, C) with picks
  TensorView scale, shift;  // f32 (C)
  TensorView out;           // f32 or bf16, (N, h, w, C) or (N, C, h, w)
  ImageLayout layout = ImageLayout::kChannelsLast;

  // i32 (N): the source image of each example, in [0, M), unchecked. Undefined: images in order.
  TensorView picks = {};
  // i32 (N, 3): one PixelWindow of h x w pixels each, which must lie within its padded image (unchecked).
  // Undefined: whole images, h x w being H x W and `pad` 0.
  TensorView windows = {};
  std::int64_t pad = 0;  // pixels around each image; they are scaled like the image's
  PixelBorder border = PixelBorder::kZero;
  // f32 (N, 2): one PixelTone each. Undefined: no tone.
  TensorView tones = {};
};

// Rows of pixels, some of which arrived as windows of JPEGs. All views are in the device's memory and contiguous.
struct JpegDecoding {
  std::span<const JpegWindow> rows;  // as on the device; read during the call
  TensorView windows;                // u8 (N, sizeof(JpegWindow)), aligned to 4 bytes
  TensorView pixels;                 // u8 (N, h, w, 3), aligned to 4 bytes
  TensorView scratch;                // u8, aligned to 16 bytes
};

// The 16-bit arithmetic of resizing, on the host and on devices. Pixels between the two passes are levels times
// 2^7, weights are shares times 2^15, at most 2^15 - 1.
using FixedLevel = std::int16_t;
using FixedWeight = std::int16_t;
constexpr int kLevelBits = 7;
constexpr std::int32_t kMaxFixedLevel = 32767;  // sums saturate here

// Returns one product of a sum.
constexpr std::int32_t fixed_product(std::int32_t level, std::int32_t weight) noexcept {
  return (level * weight + (1 << 14)) >> 15;
}
constexpr FixedLevel to_fixed_level(std::int32_t sum) noexcept {
  return static_cast<FixedLevel>(sum < kMaxFixedLevel ? sum : kMaxFixedLevel);
}
// Returns a sum of products as a level of 0 to 255.
constexpr std::uint8_t to_level(std::int32_t sum) noexcept {
  const std::int32_t level = (to_fixed_level(sum) + (1 << (kLevelBits - 1))) >> kLevelBits;
  return static_cast<std::uint8_t>(level > 255 ? 255 : level);
}

// Thread-safe; one implementation per backend, all with the same bits.
class InputKernels {
 public:
  virtual ~InputKernels() = default;

  // Computes pixel * scale[c] + shift[c], the product rounded before the sum, for each picked image's window, then
  // applies its tone, in one pass and in stream order; a bf16 output is the f32 one rounded to the nearest. Throws
  // ConfigError at once if shapes or types do not fit. May be captured.
  virtual void convert_pixels(Stream& stream, const PixelConversion& conversion) = 0;

  // Returns whether decode_jpegs() is implemented.
  virtual bool decodes_jpegs() const noexcept { return false; }
  // Replaces each row that holds a window of a JPEG by its pixels, those of libjpeg-turbo and the host's resize,
  // in stream order. REQUIRES: decodes_jpegs(); a JpegWindowWriter made the windows. Their places in the scratch
  // memory ascend; where they begin at 0 again, the rows before are decoded first.
  virtual void decode_jpegs(Stream& /*stream*/, const JpegDecoding& /*decoding*/) {
    throw ConfigError("the device does not decode JPEGs");
  }
};

// Maximum number of elements of an image: indices within it are 32-bit.
inline constexpr std::int64_t kMaxImageElements = std::int64_t{1} << 30;
inline constexpr std::int64_t kMaxPixelPadding = std::int64_t{1} << 20;

// Checks windows of images `in` (M, H, W, C) that give an output `out` (N, h, w, C). Throws ConfigError.
inline void check_pixel_windows(const PixelConversion& conversion, const Shape& in, const Shape& out) {
  if (!conversion.windows.defined()) {
    if (conversion.pad == 0) return;
    throw ConfigError("a padding of " + std::to_string(conversion.pad) + " without windows: nobody would see it");
  }
  const std::int64_t pad = conversion.pad;
  if (conversion.windows.dtype != DType::kI32 || !(conversion.windows.shape == Shape{out[0], 3})) {
    throw ConfigError("windows must be int32, three numbers for each image of " + out.to_string());
  }
  const bool reflects = conversion.border == PixelBorder::kReflect;
  if (pad < 0 || pad > kMaxPixelPadding || (reflects && (pad >= in[1] || pad >= in[2]))) {
    throw ConfigError("images of " + in.to_string() + " cannot be padded by " + std::to_string(pad));
  }
  if (out[1] > in[1] + 2 * pad || out[2] > in[2] + 2 * pad) {
    throw ConfigError("windows of " + out.to_string() + " are larger than images of " + in.to_string() +
                      " padded by " + std::to_string(pad));
  }
}

// Checks a conversion, first thing in every implementation. Throws ConfigError.
inline void check_pixel_conversion(const PixelConversion& conversion) {
  Shape in = conversion.pixels.shape;
  if (in.rank() != 4 || conversion.pixels.dtype != DType::kU8) {
    throw ConfigError("pixels must be uint8 of shape (N, H, W, C), not " +
                      std::string(to_string(conversion.pixels.dtype)) + " " + in.to_string());
  }
  if (conversion.picks.defined()) {
    if (conversion.picks.dtype != DType::kI32 || conversion.picks.shape.rank() != 1) {
      throw ConfigError("picks must be int32, one number for each example, not " +
                        std::string(to_string(conversion.picks.dtype)) + " " + conversion.picks.shape.to_string());
    }
    in = in.without_front().with_front(conversion.picks.shape[0]);
  }
  const bool last = conversion.layout == ImageLayout::kChannelsLast;
  Shape out = last ? in : Shape{in[0], in[3], in[1], in[2]};
  const Shape& given = conversion.out.shape;
  if (conversion.windows.defined() && given.rank() == 4) {
    out = last ? Shape{in[0], given[1], given[2], in[3]} : Shape{in[0], in[3], given[2], given[3]};
  }
  const auto is = [](const TensorView& view, const Shape& shape) {
    return view.dtype == DType::kF32 && view.shape == shape;
  };
  const bool half = conversion.out.dtype == DType::kBF16;
  if (!is({conversion.out.data, given, half ? DType::kF32 : conversion.out.dtype}, out)) {
    throw ConfigError("the output must be float32 or bfloat16 of shape " + out.to_string() + ", not " +
                      std::string(to_string(conversion.out.dtype)) + " " + conversion.out.shape.to_string());
  }
  if (!is(conversion.scale, {in[3]}) || !is(conversion.shift, {in[3]})) {
    throw ConfigError("scale and shift must be float32, one number for each channel of " + in.to_string());
  }
  const TensorView& tones = conversion.tones;
  if (tones.defined() && (tones.dtype != DType::kF32 || !(tones.shape == Shape{in[0], 2}))) {
    throw ConfigError("tones must be float32, two numbers for each image of " + out.to_string());
  }
  check_pixel_windows(conversion, in, last ? out : Shape{out[0], out[2], out[3], out[1]});
  if (in.without_front().elements() > kMaxImageElements || out.without_front().elements() > kMaxImageElements) {
    throw ConfigError("an image of " + in.to_string() + " has more than " + std::to_string(kMaxImageElements) +
                      " elements");
  }
}

}  // namespace headrace
