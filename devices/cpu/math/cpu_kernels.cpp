#include "headrace/devices/cpu/math/cpu_kernels.h"

#include <cstddef>
#include <cstdint>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/device.h"

namespace headrace {
namespace cpu {

CpuKernels::CpuKernels(const std::string& device, int threads, Bf16Products products)
    : onednn_(device, threads, products) {}

bool CpuKernels::prefers_bf16() const noexcept { return onednn_.bf16_products() == Bf16Products::kNative; }

// Half the bytes: moving them takes most of a step's time.
DType CpuKernels::activation_type(Precision precision) const noexcept {
  return precision == Precision::kBF16 ? DType::kBF16 : DType::kF32;
}

}  // namespace cpu

std::unique_ptr<Kernels> create_cpu_kernels(const std::string& device, int threads, Bf16Products products) {
  return std::make_unique<cpu::CpuKernels>(device, threads, products);
}

}  // namespace headrace

namespace headrace::cpu {

CpuStream& cpu_stream(Stream& stream) {
  auto* mine = dynamic_cast<CpuStream*>(&stream);
  if (mine == nullptr) {
    throw DeviceError(ErrorCode::kInvalidArgument, "CPU mathematics was submitted to another device's stream",
                      stream.device().info().name, "use the kernels() of the device that made the stream");
  }
  return *mine;
}

}  // namespace headrace::cpu

namespace headrace {
namespace {

// The sizes of an image and its window, in pixels.
struct Extents {
  std::int64_t height, width;          // of the image
  std::int64_t out_height, out_width;  // of its window
  std::int64_t channels;
  std::int64_t pad;
  bool reflects;
};

// Returns row or column `at` of the padded image as one of the image of `size`; -1: a border of zeros.
std::int64_t inside(std::int64_t at, std::int64_t size, const Extents& extents) {
  at -= extents.pad;
  if (at >= 0 && at < size) return at;
  return extents.reflects ? reflected(at, size) : -1;
}

// Pixel `i`, channel `c` of a window is written to out[i * pixel + c * channel].
struct Steps {
  std::int64_t pixel;
  std::int64_t channel;
};

// An example's window on its image, and its tone.
struct Example {
  PixelWindow window;
  const PixelTone* tone;  // null: nothing
};

template <typename Out>
void convert_image(const PixelConversion& conversion, const Extents& extents, const Example& example,
                   const std::uint8_t* in, Out* out) {
  const auto& [window, tone] = example;
  const std::int64_t pixels = extents.out_height * extents.out_width;
  const bool last = conversion.layout == ImageLayout::kChannelsLast;
  const Steps steps{.pixel = last ? extents.channels : 1, .channel = last ? 1 : pixels};
  const auto* scale = conversion.scale.as<const float>();
  const auto* shift = conversion.shift.as<const float>();
  for (std::int64_t i = 0; i < pixels; ++i) {
    const std::int64_t x = i % extents.out_width;
    const std::int64_t across = window.mirrored != 0 ? extents.out_width - 1 - x : x;
    const std::int64_t row = inside(window.top + i / extents.out_width, extents.height, extents);
    const std::int64_t column = inside(window.left + across, extents.width, extents);
    const bool border = row < 0 || column < 0;
    const std::uint8_t* pixel = in + (border ? 0 : (row * extents.width + column) * extents.channels);
    for (std::int64_t c = 0; c < extents.channels; ++c) {
      const float product = (border ? 0.0F : static_cast<float>(pixel[c])) * scale[c];
      const float value = product + shift[c];
      const float toned = tone == nullptr ? value : (value + tone->shift) * tone->gain;
      out[i * steps.pixel + c * steps.channel] = cpu::element<Out>(toned);
    }
  }
}

template <typename Out>
void convert(const PixelConversion& conversion) {
  const Shape& in = conversion.pixels.shape;
  const Shape& out = conversion.out.shape;
  const int rows = conversion.layout == ImageLayout::kChannelsLast ? 1 : 2;  // axis of the output
  const Extents extents{.height = in[1],
                        .width = in[2],
                        .out_height = out[rows],
                        .out_width = out[rows + 1],
                        .channels = in[3],
                        .pad = conversion.pad,
                        .reflects = conversion.border == PixelBorder::kReflect};
  const auto* windows = conversion.windows.as<const PixelWindow>();
  const auto* tones = conversion.tones.as<const PixelTone>();
  const auto* picks = conversion.picks.as<const std::int32_t>();
  for (std::int64_t n = 0; n < out[0]; ++n) {
    const std::int64_t from = picks != nullptr ? picks[n] : n;
    convert_image(conversion, extents,
                  {.window = windows != nullptr ? windows[n] : PixelWindow{},
                   .tone = tones != nullptr ? tones + n : nullptr},
                  conversion.pixels.as<const std::uint8_t>() + from * in.without_front().elements(),
                  conversion.out.as<Out>() + n * out.without_front().elements());
  }
}

}  // namespace

void CpuInputKernels::convert_pixels(Stream& stream, const PixelConversion& conversion) {
  check_pixel_conversion(conversion);
  stream.call([conversion] {
    cpu::with_type(conversion.out.dtype, [&]<typename Out>(Out) { convert<Out>(conversion); });
  });
}

}  // namespace headrace
