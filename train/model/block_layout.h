// Where a shard's block has its fixed parts; those behind the totals follow from the objective.
//
// The host's memory and the device's have the same parts: scalars, group scale, totals, labels; behind them the
// device has the metrics' tables. The first two go to the device in one copy, the other two come back in one, of
// the labels class numbers alone.
#pragma once

#include <cstddef>

#include "headrace/devices/kernels.h"

namespace headrace {

constexpr std::size_t kCacheLine = 64;  // every part begins on one
constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

constexpr std::size_t kScalarsAt = 0;
constexpr std::size_t kGroupScaleAt = whole_lines(sizeof(StepScalars));
constexpr std::size_t kTotalsAt = kGroupScaleAt + kCacheLine;

}  // namespace headrace
