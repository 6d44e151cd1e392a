#include "headrace/tools/pipelines/skewed.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/devices/base/clock.h"

namespace headrace::tools {
namespace {

constexpr std::uint32_t kOneIn = 20;
constexpr double kSampleSeconds = 2e-3, kSlowSeconds = 19 * kSampleSeconds;

}  // namespace

Operations skew() {
  return user_map(
      {.name = "skew",
       .output = {.name = "image", .dtype = DType::kU8, .shape = {224, 224, 3}},
       .function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox& random) {
         std::ranges::copy(in, out.begin());
         if (random.below(kOneIn) != 0) return;
         for (const Stopwatch watch; watch.seconds() < kSlowSeconds;) {
         }
       }});
}

}  // namespace headrace::tools
