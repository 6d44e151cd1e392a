// What a GPU's tensor cores do, lane by lane: a Warp for work that is written over one (tensor_core.cuh), on the
// host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "headrace/devices/base/bf16.h"

namespace headrace::test {

inline constexpr int kLanes = 32;

// Offsets are those of `shared`; what lies beyond it is an error of std::vector::at().
class ModelWarp {
 public:
  template <int kCount>
  struct Words {
    std::uint32_t values[kLanes][kCount] = {};
  };
  template <typename T>
  struct OfLanes {
    std::array<T, kLanes> values = {};
    const T& of(int lane) const { return values[static_cast<std::size_t>(lane)]; }
  };
  struct Sums {
    float values[kLanes][4] = {};
    const float (&of(int lane) const)[4] { return values[lane]; }
  };

  explicit ModelWarp(const std::vector<std::byte>& shared) : shared_(shared) {}

  template <typename Function>
  auto of_lanes(const Function& function) const -> OfLanes<decltype(function(0))> {
    OfLanes<decltype(function(0))> result;
    for (int lane = 0; lane < kLanes; ++lane) result.values[static_cast<std::size_t>(lane)] = function(lane);
    return result;
  }
  template <typename Function>
  void each_lane(const Function& function) const {
    for (int lane = 0; lane < kLanes; ++lane) function(lane);
  }
  template <int kWord, int kCount, typename Function>
  void fetch(Words<kCount>& words, const Function& address) const {
    for (int lane = 0; lane < kLanes; ++lane) std::memcpy(&words.values[lane][kWord], address(lane), 4);
  }
  template <int kCount, typename Function>
  void load(Words<kCount>& words, const Function& offset) const {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int m = 0; m < kCount; ++m) {
        const int row = offset(8 * m + lane / 4), column = 2 * (lane % 4);
        words.values[lane][m] = pair(value(row, column), value(row, column + 1));
      }
    }
  }
  template <int kCount, typename Function>
  void load_transposed(Words<kCount>& words, const Function& offset) const {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int m = 0; m < kCount; ++m) {
        const int row = 8 * m + 2 * (lane % 4), column = lane / 4;
        words.values[lane][m] = pair(value(offset(row), column), value(offset(row + 1), column));
      }
    }
  }
  // Adds (16, 16) x (16, 8): the layouts of mma.m16n8k16 in PTX.
  template <int kFirst, int kCount>
  static void multiply_add(Sums& sums, const Words<4>& a, const Words<kCount>& b) {
    for (int half = 0; half < 2; ++half) add_product<2>(sums, a.values, 2 * half, b.values, kFirst + half);
  }
  // Adds (16, 8) x (8, 8).
  static void multiply_add(Sums& sums, const Words<2>& a, const Words<1>& b) {
    add_product<2>(sums, a.values, 0, b.values, 0);
  }

 private:
  static std::uint32_t pair(BFloat16 low, BFloat16 high) { return low.bits | std::uint32_t{high.bits} << 16; }
  static float part(std::uint32_t word, int which) {
    return widened(BFloat16{static_cast<std::uint16_t>(which == 0 ? word : word >> 16)});
  }
  BFloat16 value(int row, int column) const {
    BFloat16 result;
    std::memcpy(&result, &shared_.at(static_cast<std::size_t>(row + 2 * column)), sizeof(result));
    return result;
  }
  // Words `word` and `word` + 1 of a hold rows 0 to 7 and 8 to 15 of eight values that are added.
  template <int kRows, int kA, int kB>
  static void add_product(Sums& sums, const std::uint32_t (&a)[kLanes][kA], int word,
                          const std::uint32_t (&b)[kLanes][kB], int b_word) {
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int r = 0; r < 2 * kRows; ++r) {
        const int row = lane / 4, column = 2 * (lane % 4) + r % 2;
        float sum = 0;
        for (int k = 0; k < 8; ++k) {
          sum += part(a[4 * row + k / 2][word + r / 2], k % 2) * part(b[4 * column + k / 2][b_word], k % 2);
        }
        sums.values[lane][r] += sum;
      }
    }
  }

  const std::vector<std::byte>& shared_;
};

}  // namespace headrace::test
