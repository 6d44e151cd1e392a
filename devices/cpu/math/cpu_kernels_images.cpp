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

void CpuKernels::shift_images(Stream& stream, const TensorView& x, const ImageShift& shift, const TensorView& y) {
  check::shift("shift_images", x, shift, y, kHalf);
  submit(stream, [=] {
    const ImageGeometry geometry{x.shape[0], x.shape[1], x.shape[2], x.shape[3]};
    with_type(x, [&]<typename T>(T) { cpu::shift_images(geometry, x.as<T>(), shift, y.as<T>()); });
  });
}

void CpuKernels::max_pool_forward(Stream& stream, const TensorView& x, const TensorView& y,
                                  const TensorView& argmax, const PoolOptions& options) {
  check::max_pool("max_pool_forward", x, y, argmax, options, kHalf);
  submit(stream, [=] {
    with_type(x, [&]<typename T>(T) {
      cpu::max_pool_forward(pool_geometry(x, options), x.as<T>(), y.as<T>(), argmax.as<std::uint8_t>());
    });
  });
}

void CpuKernels::max_pool_backward(Stream& stream, const TensorView& dy, const TensorView& argmax,
                                   const TensorView& dx, const PoolOptions& options) {
  check::max_pool("max_pool_backward", dx, dy, argmax, options, kHalf);
  submit(stream, [=] {
    with_type(dx, [&]<typename T>(T) {
      cpu::max_pool_backward(pool_geometry(dx, options), dy.as<T>(), argmax.as<std::uint8_t>(), dx.as<T>());
    });
  });
}

void CpuKernels::average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y,
                                      const PoolOptions& options) {
  check::average_pool("average_pool_forward", x, y, options, kHalf);
  submit(stream, [=] {
    with_type(x,
              [&]<typename T>(T) { cpu::average_pool_forward(pool_geometry(x, options), x.as<T>(), y.as<T>()); });
  });
}

void CpuKernels::average_pool_backward(Stream& stream, const TensorView& dy, const TensorView& dx,
                                       const PoolOptions& options) {
  check::average_pool("average_pool_backward", dx, dy, options, kHalf);
  submit(stream, [=] {
    with_type(dx, [&]<typename T>(T) {
      cpu::average_pool_backward(pool_geometry(dx, options), dy.as<T>(), dx.as<T>());
    });
  });
}

void CpuKernels::global_average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y) {
  check::global_pool("global_average_pool_forward", x, y, kHalf);
  submit(stream, [=] {
    with_type(x, [&]<typename T>(T) {
      cpu::global_average_forward(x.as<T>(), y.as<T>(), x.shape[0], x.shape[1] * x.shape[2], x.shape[3]);
    });
  });
}

void CpuKernels::global_average_pool_backward(Stream& stream, const TensorView& dy, const TensorView& dx) {
  check::global_pool("global_average_pool_backward", dx, dy, kHalf);
  submit(stream, [=] {
    with_type(dx, [&]<typename T>(T) {
      cpu::global_average_backward(dy.as<T>(), dx.as<T>(), dx.shape[0], dx.shape[1] * dx.shape[2], dx.shape[3]);
    });
  });
}

}  // namespace headrace::cpu
