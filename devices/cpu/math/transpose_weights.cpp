#include "headrace/devices/cpu/math/transpose_weights.h"

#include <algorithm>

namespace headrace::cpu {
namespace {

constexpr std::int64_t kTile = 16;  // a tile's lines of both matrices fit the first cache

// to[c * to_step + o] = from[o * from_step + c]
template <typename T>
void transpose_tile(const T* from, std::int64_t from_step, T* to, std::int64_t to_step, std::int64_t rows,
                    std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t o = 0; o < rows; ++o) to[c * to_step + o] = from[o * from_step + c];
  }
}

}  // namespace

template <typename T>
void transpose_weights(const KernelShape& shape, const T* from, T* to) {
  const std::int64_t taps = shape.height * shape.width;
  const std::int64_t from_step = taps * shape.channels;
  const std::int64_t to_step = taps * shape.outputs;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const T* from_tap = from + tap * shape.channels;
    T* to_tap = to + (taps - 1 - tap) * shape.outputs;
    for (std::int64_t o = 0; o < shape.outputs; o += kTile) {
      for (std::int64_t c = 0; c < shape.channels; c += kTile) {
        transpose_tile(from_tap + o * from_step + c, from_step, to_tap + c * to_step + o, to_step,
                       std::min(kTile, shape.outputs - o), std::min(kTile, shape.channels - c));
      }
    }
  }
}
template void transpose_weights(const KernelShape&, const float*, float*);
template void transpose_weights(const KernelShape&, const BFloat16*, BFloat16*);

}  // namespace headrace::cpu
