// The functions of the CPU's table for pooling and views of images.
#include <algorithm>
#include <cstdint>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/sizes.h"
#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/math/convolutions.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {
namespace {

// Makes shifted and mirrored copies of images.
struct ImageGeometry {
  std::int64_t images = 0, height = 0, width = 0, channels = 0;
};

template <typename T>
void shift_row(const T* x, std::int64_t right, bool mirror, std::int64_t width, std::int64_t channels, T* y) {
  for (std::int64_t column = 0; column < width; ++column) {
    const std::int64_t from = reflected((mirror ? width - 1 - column : column) + right, width);
    std::copy_n(x + from * channels, channels, y + column * channels);
  }
}

// T is float or BFloat16.
template <typename T>
void shift_images(const ImageGeometry& geometry, const T* x, const ImageShift& shift, T* y) {
  const std::int64_t row = geometry.width * geometry.channels;
  parallel_ranges(geometry.images * geometry.height, row_grain(row), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t image = at / geometry.height;
      const std::int64_t from = reflected(at % geometry.height + shift.down, geometry.height);
      shift_row(x + (image * geometry.height + from) * row, shift.right, shift.mirror, geometry.width,
                geometry.channels, y + at * row);
    }
  });
}

PoolGeometry pool_geometry(const TensorView& x, const PoolOptions& options) {
  return {.images = x.shape[0],
          .height = x.shape[1],
          .width = x.shape[2],
          .channels = x.shape[3],
          .window = options.window,
          .stride = options.stride,
          .pad = options.pad};
}

}  // namespace

void CpuKernels::run(Stream& stream, const kernel::ShiftImages& of) {
  submit(stream, [=] {
    const ImageGeometry geometry{of.x.shape[0], of.x.shape[1], of.x.shape[2], of.x.shape[3]};
    with_type(of.x, [&]<typename T>(T) { cpu::shift_images(geometry, of.x.as<T>(), of.shift, of.y.as<T>()); });
  });
}

void CpuKernels::run(Stream& stream, const kernel::MaxPoolForward& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::max_pool_forward(pool_geometry(of.x, of.options), of.x.as<T>(), of.y.as<T>(),
                            of.argmax.as<std::uint8_t>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::MaxPoolBackward& of) {
  submit(stream, [=] {
    with_type(of.dx, [&]<typename T>(T) {
      cpu::max_pool_backward(pool_geometry(of.dx, of.options), of.dy.as<T>(), of.argmax.as<std::uint8_t>(),
                             of.dx.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::AveragePoolForward& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::average_pool_forward(pool_geometry(of.x, of.options), of.x.as<T>(), of.y.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::AveragePoolBackward& of) {
  submit(stream, [=] {
    with_type(of.dx, [&]<typename T>(T) {
      cpu::average_pool_backward(pool_geometry(of.dx, of.options), of.dy.as<T>(), of.dx.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::GlobalAveragePoolForward& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::global_average_forward(of.x.as<T>(), of.y.as<T>(), of.x.shape[0], of.x.shape[1] * of.x.shape[2],
                                  of.x.shape[3]);
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::GlobalAveragePoolBackward& of) {
  submit(stream, [=] {
    with_type(of.dx, [&]<typename T>(T) {
      cpu::global_average_backward(of.dy.as<T>(), of.dx.as<T>(), of.dx.shape[0], of.dx.shape[1] * of.dx.shape[2],
                                   of.dx.shape[3]);
    });
  });
}

}  // namespace headrace::cpu
