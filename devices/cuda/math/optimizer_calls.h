// Adam and SGD of GpuKernels, and the work around an update. Private to the CUDA backend.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "headrace/devices/cuda/element.h"
#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// The optimizers as work for threads: each parameter independently. `rounded` may be null. Private to the CUDA
// backend.

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
    if (scalars->failed()) return;
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
    if (scalars->failed()) return;
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

// The elements are the rows of a matrix of one column.
struct SquareSums {
  using Total = Sum<float>;

  const float* x;
  std::int64_t count;
  GradientNorm* norm;

  HEADRACE_HOST_DEVICE std::int64_t rows() const { return count; }
  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void add(Nothing, Total (&totals)[kWidth], std::int64_t row, std::int64_t) const {
    totals[0].value += x[row] * x[row];
  }
  HEADRACE_HOST_DEVICE void finish(std::int64_t, const Sum<double>& total) const { norm->squares += total.value; }
};

inline ColumnGrid square_grid(const TensorView& x) { return column_grid(x.elements(), 1, 1); }
inline std::size_t square_scratch_bytes(const TensorView& x) {
  return static_cast<std::size_t>(square_grid(x).row_blocks) * sizeof(Sum<float>);
}

// Work for one thread.
struct ClipFactor {
  float max_norm;
  GradientNorm* norm;

  template <int>
  HEADRACE_HOST_DEVICE void run(std::int64_t) const {
    const double length = sqrt(norm->squares), limit = max_norm;
    const bool finite = length <= std::numeric_limits<double>::max();
    norm->factor = length <= limit ? 1.0F
                   : finite        ? static_cast<float>(limit / length)
                                   : std::numeric_limits<float>::quiet_NaN();
  }
};

struct Clamp {
  float* x;
  float limit;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    Pack<float, kWidth> pack = load_pack<kWidth>(x + at);
    for (float& value : pack.values) value = value < -limit ? -limit : value > limit ? limit : value;
    store_pack(x + at, pack);
  }
};

struct Average {
  const float* weights;
  const StepScalars* scalars;
  float* average;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    if (scalars->failed()) return;
    const float decay = scalars->average_decay;
    const Pack<float, kWidth> w = load_pack<kWidth>(weights + at);
    Pack<float, kWidth> pack = load_pack<kWidth>(average + at);
    for (int k = 0; k < kWidth; ++k) pack.values[k] = w.values[k] + decay * (pack.values[k] - w.values[k]);
    store_pack(average + at, pack);
  }
};

struct LookAhead {
  float* parameters;
  BFloat16* rounded;  // or null
  const StepScalars* scalars;
  float* slow;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    const float share = scalars->slow_share;
    if (share == 0 || scalars->failed()) return;
    const Pack<float, kWidth> w = load_pack<kWidth>(parameters + at);
    Pack<float, kWidth> pack = load_pack<kWidth>(slow + at);
    for (int k = 0; k < kWidth; ++k) pack.values[k] += share * (w.values[k] - pack.values[k]);
    store_pack(slow + at, pack);
    store_pack(parameters + at, pack);
    store_rounded(rounded, at, pack);
  }
};

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Adam& of) {
  launches_.submit(
      stream, name_of(of), [=, ranges = std::vector(of.ranges.begin(), of.ranges.end())](auto& launch) {
        const auto& [values, rounded] = of.parameters;
        const AdamRule rule{values.as<float>(),          rounded.as<BFloat16>(),       of.gradients.as<float>(),
                            of.first_moment.as<float>(), of.second_moment.as<float>(), of.scalars};
        submit_ranges(launch, rule, std::span(ranges),
                      packs_fit(4, values, rounded, of.gradients, of.first_moment, of.second_moment));
      });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Sgd& of) {
  launches_.submit(
      stream, name_of(of), [=, ranges = std::vector(of.ranges.begin(), of.ranges.end())](auto& launch) {
        const auto& [values, rounded] = of.parameters;
        const SgdRule rule{values.as<float>(), rounded.as<BFloat16>(), of.gradients.as<float>(),
                           of.velocity.as<float>(), of.scalars};
        submit_ranges(launch, rule, std::span(ranges), packs_fit(4, values, rounded, of.gradients, of.velocity));
      });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::AddSquares& of) {
  launches_.submit(stream, name_of(of), square_scratch_bytes(of.x), [=](auto& launch, void* scratch) {
    const SquareSums work{of.x.as<float>(), of.x.elements(), of.norm};
    launch.template reduce<1>(work, square_grid(of.x), scratch);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::ClipFactor& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    launch.template flat<1>(ClipFactor{of.max_norm, of.norm}, 1);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Clamp& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    submit_flat<4>(launch, Clamp{of.x.as<float>(), of.limit}, of.x.elements(), of.x);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Average& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const Average work{of.weights.as<float>(), of.scalars, of.average.as<float>()};
    submit_flat<4>(launch, work, of.weights.elements(), of.weights, of.average);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::LookAhead& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const auto& [values, rounded] = of.parameters;
    const LookAhead work{values.as<float>(), rounded.as<BFloat16>(), of.scalars, of.slow.as<float>()};
    submit_flat<4>(launch, work, values.elements(), values, rounded, of.slow);
  });
}

}  // namespace headrace::cuda
