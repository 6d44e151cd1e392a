#include "headrace/pipeline/operations/kernels/rgb_variants.h"

#include <vector>

#include "headrace/devices/base/memory.h"
#include "headrace/pipeline/operations/kernels/rgb_rows.h"

namespace headrace {
namespace {

void to_planes_portable(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                        float* to) {
  RgbRows rows(image);
  FetchAhead ahead(traffic.ahead, image.height);
  for (std::int64_t y = 0; y < image.height; ++y) {
    ahead.fetch_piece();
    planes_part(image, rows.row(y), y, 0, image.width, scale, shift, to);
  }
}

void to_pixels_portable(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                        float* to) {
  RgbRows rows(image);
  FetchAhead ahead(traffic.ahead, image.height);
  for (std::int64_t y = 0; y < image.height; ++y) {
    ahead.fetch_piece();
    pixels_part(image, rows.row(y), y, 0, image.width, scale, shift, to);
  }
}

void mirror_portable(const RgbImage& image, std::uint8_t* to) {
  for (std::int64_t y = 0; y < image.height; ++y) mirror_part(image, y, 0, image.width, to);
}

#if defined(__x86_64__)

void to_planes_permuted(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                        float* to) {
  (image.width % kPermutedPixels == 0 ? to_planes_vbmi : to_planes_avx512)(image, scale, shift, traffic, to);
}

#endif

std::vector<RgbKernels> find_runnable() {
  std::vector<RgbKernels> found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx512 && can_permute_bytes()) found.push_back({to_planes_permuted, to_pixels_avx2, mirror_avx2});
  if (avx512) found.push_back({to_planes_avx512, to_pixels_avx2, mirror_avx2});
  if (__builtin_cpu_supports("avx2")) found.push_back({to_planes_avx2, to_pixels_avx2, mirror_avx2});
#endif
  found.push_back(portable_rgb_kernels());
  return found;
}

}  // namespace

const RgbKernels& portable_rgb_kernels() noexcept {
  static constexpr RgbKernels kernels{to_planes_portable, to_pixels_portable, mirror_portable};
  return kernels;
}

std::span<const RgbKernels> runnable_rgb_kernels() {
  static const std::vector<RgbKernels> found = find_runnable();
  return found;
}

const RgbKernels& rgb_kernels() noexcept {
  static const RgbKernels best = runnable_rgb_kernels().front();
  return best;
}

}  // namespace headrace
