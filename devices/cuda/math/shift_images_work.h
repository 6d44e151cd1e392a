// Shifted and mirrored images as work for threads. Private to the CUDA backend.
#pragma once

#include "headrace/devices/base/reflect.h"
#include "headrace/devices/cuda/math/pooling_work.h"

namespace headrace::cuda {

// A row is a pixel of the result.
template <typename T>
struct ShiftImages {
  PixelGrid grid;
  std::int64_t channels;
  ImageShift shift;
  const T* x;
  T* y;

  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(Nothing, std::int64_t row, std::int64_t column) const {
    const Pixel to = grid.pixel(row);
    const int line = reflected(to.y + shift.down, grid.height);
    const int place = reflected((shift.mirror ? grid.width - 1 - to.x : to.x) + shift.right, grid.width);
    const std::int64_t from = (to.image * grid.height + line) * grid.width + place;
    store_pack(y + row * channels + column, load_pack<kWidth>(x + from * channels + column));
  }
};

template <typename Launcher>
void submit_shift_images(Launcher& launch, const TensorView& x, const ImageShift& shift, const TensorView& y) {
  by_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    const std::int64_t channels = x.shape[3];
    const ShiftImages<T> work{{x.shape[1], x.shape[2]}, channels, shift, x.as<T>(), y.as<T>()};
    constexpr int kWidth = kPackWidth<T>;
    by_width<kWidth>(channels % kWidth == 0 && packs_fit(kWidth, x, y), [&](auto width) {
      launch.template columns<width()>(work, column_grid(x.elements() / channels, channels, width()));
    });
  });
}

}  // namespace headrace::cuda
