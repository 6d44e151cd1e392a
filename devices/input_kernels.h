// What an input pipeline asks of a device that holds its batches: bytes cross the bus, floats are made there.
#pragma once

#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/image_layout.h"
#include "headrace/devices/stream.h"
#include "headrace/devices/tensor.h"

namespace headrace {

// All views are in the device's memory and contiguous.
struct PixelConversion {
  TensorView pixels;        // u8 (N, H, W, C)
  TensorView scale, shift;  // f32 (C)
  TensorView out;           // f32, (N, H, W, C) or (N, C, H, W)
  ImageLayout layout = ImageLayout::kChannelsLast;
};

// Thread-safe; one implementation a backend, all with the same bits.
class InputKernels {
 public:
  virtual ~InputKernels() = default;

  // out = pixel * scale[c] + shift[c], the product rounded before the sum, in one pass and in stream order.
  // Throws ConfigError at once when shapes or types do not fit. May be captured.
  virtual void convert_pixels(Stream& stream, const PixelConversion& conversion) = 0;
};

// The check that every implementation makes first.
inline void check_pixel_conversion(const PixelConversion& conversion) {
  const Shape& in = conversion.pixels.shape;
  if (in.rank() != 4 || conversion.pixels.dtype != DType::kU8) {
    throw ConfigError("pixels must be uint8 of shape (N, H, W, C), not " +
                      std::string(to_string(conversion.pixels.dtype)) + " " + in.to_string());
  }
  const Shape out = conversion.layout == ImageLayout::kChannelsLast ? in : Shape{in[0], in[3], in[1], in[2]};
  const auto is = [](const TensorView& view, const Shape& shape) {
    return view.dtype == DType::kF32 && view.shape == shape;
  };
  if (!is(conversion.out, out)) {
    throw ConfigError("the output must be float32 of shape " + out.to_string() + ", not " +
                      std::string(to_string(conversion.out.dtype)) + " " + conversion.out.shape.to_string());
  }
  if (!is(conversion.scale, {in[3]}) || !is(conversion.shift, {in[3]})) {
    throw ConfigError("scale and shift must be float32, one number for each channel of " + in.to_string());
  }
}

}  // namespace headrace
