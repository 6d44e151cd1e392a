// The optimizers as work for threads: each parameter independently. `rounded` may be null. Private to the CUDA
// backend.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "headrace/devices/cuda/element.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// Writes the bf16 copy of these parameters, if there is one.
template <int kWidth>
HEADRACE_HOST_DEVICE void store_rounded(BFloat16* rounded, std::int64_t at, const Pack<float, kWidth>& w) {
  if (rounded == nullptr) return;
  Pack<BFloat16, kWidth> pack;
  for (int k = 0; k < kWidth; ++k) pack.values[k] = element_of<BFloat16>(w.values[k]);
  store_pack(rounded + at, pack);
}

struct AdamRule {
  using Options = AdamOptions;

  float* parameters;
  BFloat16* rounded;
  const float* gradients;
  float* first;
  float* second;
  const StepScalars* scalars;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(const AdamOptions& options, std::int64_t at) const {
    const float learning_rate = scalars->learning_rates[options.group];
    const float keep = 1.0F - learning_rate * options.weight_decay;
    const float rate = learning_rate * scalars->corrections[options.group][0];
    const float correction = scalars->corrections[options.group][1];
    const Pack<float, kWidth> gradient = load_pack<kWidth>(gradients + at);
    Pack<float, kWidth> w = load_pack<kWidth>(parameters + at);
    Pack<float, kWidth> m = load_pack<kWidth>(first + at);
    Pack<float, kWidth> v = load_pack<kWidth>(second + at);
    for (int k = 0; k < kWidth; ++k) {
      const float g = gradient.values[k];
      m.values[k] = options.beta1 * m.values[k] + (1.0F - options.beta1) * g;
      v.values[k] = options.beta2 * v.values[k] + (1.0F - options.beta2) * (g * g);
      w.values[k] = keep * w.values[k] - rate * m.values[k] / (sqrtf(v.values[k] * correction) + options.epsilon);
    }
    store_pack(first + at, m);
    store_pack(second + at, v);
    store_pack(parameters + at, w);
    store_rounded(rounded, at, w);
  }
};

struct SgdRule {
  using Options = SgdOptions;

  float* parameters;
  BFloat16* rounded;
  const float* gradients;
  float* velocity;  // may be null if no range has a momentum
  const StepScalars* scalars;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(const SgdOptions& options, std::int64_t at) const {
    const float rate = scalars->learning_rates[options.group];
    const Pack<float, kWidth> gradient = load_pack<kWidth>(gradients + at);
    Pack<float, kWidth> w = load_pack<kWidth>(parameters + at);
    if (options.momentum == 0) {
      descend(options, rate, gradient, w);
    } else {
      Pack<float, kWidth> v = load_pack<kWidth>(velocity + at);
      roll(options, rate, gradient, w, v);
      store_pack(velocity + at, v);
    }
    store_pack(parameters + at, w);
    store_rounded(rounded, at, w);
  }

 private:
  template <int kWidth>
  HEADRACE_HOST_DEVICE static void descend(const SgdOptions& options, float rate,
                                           const Pack<float, kWidth>& gradient, Pack<float, kWidth>& w) {
    for (int k = 0; k < kWidth; ++k) {
      w.values[k] -= rate * (gradient.values[k] + options.weight_decay * w.values[k]);
    }
  }
  // Nesterov looks one step of momentum ahead: gradient + momentum * v; plain momentum moves by v.
  template <int kWidth>
  HEADRACE_HOST_DEVICE static void roll(const SgdOptions& options, float rate, const Pack<float, kWidth>& gradient,
                                        Pack<float, kWidth>& w, Pack<float, kWidth>& v) {
    const float gradient_share = options.nesterov ? 1.0F : 0.0F;
    const float velocity_share = options.nesterov ? options.momentum : 1.0F;
    for (int k = 0; k < kWidth; ++k) {
      const float g = gradient.values[k] + options.weight_decay * w.values[k];
      v.values[k] = options.momentum * v.values[k] + g;
      w.values[k] -= rate * (gradient_share * g + velocity_share * v.values[k]);
    }
  }
};

inline constexpr int kMaxRanges = 32;  // per launch: with their options they are the kernel's argument

// Up to kMaxRanges of an arena, each cut into tiles of kTile elements from its start, the last one smaller.
template <typename Rule, int kTile>
struct RangesUpdate {
  struct Range {
    std::int64_t first_tile, begin, end;
    typename Rule::Options options;
  };

  Rule rule;
  int count = 0;
  std::int64_t tiles = 0;
  Range ranges[kMaxRanges] = {};

  void add(const UpdateRange<typename Rule::Options>& range) {
    ranges[count++] = {tiles, range.begin, range.end, range.options};
    tiles += (range.end - range.begin + kTile - 1) / kTile;
  }

  template <int>
  HEADRACE_HOST_DEVICE void run(std::int64_t tile) const {
    int of = 0;
    while (of + 1 < count && ranges[of + 1].first_tile <= tile) ++of;
    const Range& range = ranges[of];
    std::int64_t at = range.begin + (tile - range.first_tile) * kTile;
    if (at + kTile <= range.end) return rule.template run<kTile>(range.options, at);
    for (; at < range.end; ++at) rule.template run<1>(range.options, at);
  }
};

// Submits one launch for every kMaxRanges. `fits`: the arenas allow packs.
template <typename Rule, typename Launcher>
void submit_ranges(Launcher& launch, const Rule& rule, std::span<const UpdateRange<typename Rule::Options>> ranges,
                   bool fits) {
  constexpr int kPack = 4;
  const bool begin_packs = std::ranges::all_of(ranges, [](const auto& range) { return range.begin % kPack == 0; });
  by_width<kPack>(fits && begin_packs, [&](auto width) {
    for (std::size_t done = 0; done < ranges.size(); done += kMaxRanges) {
      RangesUpdate<Rule, width()> work{.rule = rule};
      for (const auto& range : ranges.subspan(done, std::min<std::size_t>(kMaxRanges, ranges.size() - done))) {
        work.add(range);
      }
      launch.template flat<1>(work, work.tiles);
    }
  });
}

}  // namespace headrace::cuda
