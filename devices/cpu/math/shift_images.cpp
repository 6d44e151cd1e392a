#include "headrace/devices/cpu/math/shift_images.h"

#include <algorithm>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/reflect.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

template <typename T>
void shift_row(const T* x, std::int64_t right, bool mirror, std::int64_t width, std::int64_t channels, T* y) {
  for (std::int64_t column = 0; column < width; ++column) {
    const std::int64_t from = reflected((mirror ? width - 1 - column : column) + right, width);
    std::copy_n(x + from * channels, channels, y + column * channels);
  }
}

}  // namespace

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
template void shift_images(const ImageGeometry&, const float*, const ImageShift&, float*);
template void shift_images(const ImageGeometry&, const BFloat16*, const ImageShift&, BFloat16*);

}  // namespace headrace::cpu
