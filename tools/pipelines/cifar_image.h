// One image of cifar-train in one hand-written pass, with which the engine is compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace::tools {

inline constexpr int kCifarSide = 32, kCifarPlane = kCifarSide * kCifarSide, kCifarPad = 4;
inline constexpr std::size_t kCifarBytes = std::size_t{3} * kCifarPlane;

// value = pixel * scale + shift, rounded after each of the two; one entry per channel.
struct CifarNormal {
  float scale[3], shift[3];

  CifarNormal();
};

// The position of the window's corner in the image, -kCifarPad .. kCifarPad; zeros surround the image.
struct CifarWindow {
  int top = 0, left = 0;
  bool mirrored = false;
};

// (32, 32, 3) u8 -> (3, 32, 32) f32: the window, mirrored or not, normalised. If `to` is aligned to 64 bytes, uses
// non-temporal stores, which the caller fences (finish_cifar). Prefetches `next`, the next image.
using AugmentCifar = void (*)(const std::uint8_t* image, const CifarWindow& window, const CifarNormal& normal,
                              const std::uint8_t* next, float* to);

struct CifarForm {
  const char* name;
  AugmentCifar augment;
};
// Returns the forms that this processor can run, the fastest first, the portable one last. All give the same bits.
std::span<const CifarForm> cifar_forms();

// Fences the stores. REQUIRES: called before another thread reads the images.
void finish_cifar() noexcept;

}  // namespace headrace::tools
