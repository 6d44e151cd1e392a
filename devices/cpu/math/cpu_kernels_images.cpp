// Of the CPU's table: pooling and views of images.
#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/math/average_pooling.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/cpu_submission.h"
#include "headrace/devices/cpu/math/pooling.h"
#include "headrace/devices/cpu/math/shift_images.h"

namespace headrace::cpu {
namespace {

PoolGeometry pool_geometry(const TensorView& x, const PoolOptions& options) {
  return {.images = x.shape[0],
          .height = x.shape[1],
          .width = x.shape[2],
          .channels = x.shape[3],
          .window = options.window,
          .stride = options.stride};
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
