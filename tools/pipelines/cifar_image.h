// One image of cifar-train in one pass written by hand for this one purpose: what the engine is compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace::tools {

inline constexpr int kCifarSide = 32, kCifarPlane = kCifarSide * kCifarSide, kCifarPad = 4;
inline constexpr std::size_t kCifarBytes = std::size_t{3} * kCifarPlane;

// value = pixel * scale + shift, rounded after each of the two; an entry a channel.
struct CifarNormal {
  float scale[3], shift[3];

  CifarNormal();
};

// Where the window's corner lies in the image, -kCifarPad .. kCifarPad; zeros lie around the image.
struct CifarWindow {
  int top = 0, left = 0;
  bool mirrored = false;
};

// (32, 32, 3) u8 -> (3, 32, 32) f32: the window, mirrored or not, normalised. Where `to` is aligned to 64 bytes
// the stores are non-temporal, and the caller fences them (finish_cifar). `next` is the image that comes next,
// fetched in the meantime.
using AugmentCifar = void (*)(const std::uint8_t* image, const CifarWindow& window, const CifarNormal& normal,
                              const std::uint8_t* next, float* to);

struct CifarForm {
  const char* name;
  AugmentCifar augment;
};
// Those that this processor can run, the fastest first, the portable one last. All give the same bits.
std::span<const CifarForm> cifar_forms();

// Before another thread reads what was made.
void finish_cifar() noexcept;

}  // namespace headrace::tools
