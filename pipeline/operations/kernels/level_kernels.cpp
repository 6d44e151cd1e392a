#include "headrace/pipeline/operations/kernels/level_kernels.h"

#include <algorithm>
#include <cstring>

#include "headrace/devices/base/simd.h"

namespace headrace {
namespace {

using LevelTable = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::int64_t, 256>;

HEADRACE_SIMD void subtract_from_255(const std::uint8_t* __restrict from, std::int64_t count,
                                     std::uint8_t* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(255 - from[i]);
}

HEADRACE_SIMD void keep_bits(const std::uint8_t* __restrict from, std::int64_t count, std::uint8_t mask,
                             std::uint8_t* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(from[i] & mask);
}

HEADRACE_SIMD void invert_from(const std::uint8_t* __restrict from, std::int64_t count, std::uint8_t threshold,
                               std::uint8_t* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t level = from[i];
    to[i] = level >= threshold ? static_cast<std::uint8_t>(255 - level) : level;
  }
}

// One channel.
Histogram levels_of(const LevelWork& work, std::int64_t channel) {
  Histogram counts{};
  for (std::int64_t i = channel; i < work.elements(); i += work.channels) ++counts[work.from[i]];
  return counts;
}

void look_up(const LevelWork& work, std::int64_t channel, const LevelTable& table) {
  for (std::int64_t i = channel; i < work.elements(); i += work.channels) work.to[i] = table[work.from[i]];
}

LevelTable unchanged_levels() {
  LevelTable table{};
  for (std::size_t level = 0; level < table.size(); ++level) table[level] = static_cast<std::uint8_t>(level);
  return table;
}

LevelTable stretching(const Histogram& counts) {
  int low = 0, high = 255;
  while (low < high && counts[static_cast<std::size_t>(low)] == 0) ++low;
  while (high > low && counts[static_cast<std::size_t>(high)] == 0) --high;
  LevelTable table = unchanged_levels();
  if (high <= low) return table;
  const double scale = 255.0 / (high - low), offset = -low * scale;
  for (int level = 0; level < 256; ++level) {
    const auto spread = static_cast<int>(level * scale + offset);
    table[static_cast<std::size_t>(level)] = static_cast<std::uint8_t>(std::clamp(spread, 0, 255));
  }
  return table;
}

LevelTable equalizing(const Histogram& counts) {
  std::int64_t all = 0, last = 0;
  for (const std::int64_t count : counts) {
    all += count;
    if (count != 0) last = count;
  }
  LevelTable table = unchanged_levels();
  const std::int64_t step = (all - last) / 255;
  if (step == 0) return table;
  std::int64_t below = step / 2;
  for (std::size_t level = 0; level < table.size(); ++level) {
    table[level] = static_cast<std::uint8_t>(std::min<std::int64_t>(below / step, 255));
    below += counts[level];
  }
  return table;
}

// Elements of three rows without their first and last pixels; `next` is the distance of neighbours.
HEADRACE_SIMD_MATH void sharpen_row(const std::uint8_t* __restrict above, const std::uint8_t* __restrict row,
                                    const std::uint8_t* __restrict below, std::int64_t next, std::int64_t count,
                                    float factor, std::uint8_t* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t around = above[i - next] + above[i] + above[i + next] + row[i - next] + row[i + next] +
                                below[i - next] + below[i] + below[i + next];
    const std::int32_t smooth = (2 * (around + 5 * row[i]) + 13) / 26;
    const float level = static_cast<float>(smooth) + factor * static_cast<float>(row[i] - smooth);
    const float raised = level < 0.0F ? 0.0F : level;  // not std::max(), a function of the baseline's instructions
    to[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(255.0F < raised ? 255.0F : raised));
  }
}

}  // namespace

void invert_levels(const LevelWork& work) { subtract_from_255(work.from, work.elements(), work.to); }

void posterize_levels(const LevelWork& work, int bits) {
  keep_bits(work.from, work.elements(), static_cast<std::uint8_t>(0xFF00 >> bits), work.to);
}

void solarize_levels(const LevelWork& work, int threshold) {
  if (threshold > 255) {
    std::memcpy(work.to, work.from, static_cast<std::size_t>(work.elements()));
  } else {
    invert_from(work.from, work.elements(), static_cast<std::uint8_t>(threshold), work.to);
  }
}

void stretch_levels(const LevelWork& work) {
  for (std::int64_t c = 0; c < work.channels; ++c) look_up(work, c, stretching(levels_of(work, c)));
}

void equalize_levels(const LevelWork& work) {
  for (std::int64_t c = 0; c < work.channels; ++c) look_up(work, c, equalizing(levels_of(work, c)));
}

void sharpen_levels(const LevelWork& work, float factor) {
  const std::int64_t row = work.width * work.channels, next = work.channels;
  if (work.height < 3 || work.width < 3) {
    std::memcpy(work.to, work.from, static_cast<std::size_t>(work.elements()));
    return;
  }
  const auto copied = [&](std::int64_t at, std::int64_t count) {
    std::memcpy(work.to + at, work.from + at, static_cast<std::size_t>(count));
  };
  copied(0, row);
  for (std::int64_t y = 1; y + 1 < work.height; ++y) {
    const std::int64_t at = y * row + next;
    copied(at - next, next);
    sharpen_row(work.from + at - row, work.from + at, work.from + at + row, next, row - 2 * next, factor,
                work.to + at);
    copied(y * row + row - next, next);
  }
  copied((work.height - 1) * row, row);
}

}  // namespace headrace
