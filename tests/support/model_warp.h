// What a GPU's tensor cores do, lane by lane: a Warp for work that is written over one (tensor_core.cuh), on the
// host.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/cuda/math/warp_tiles.h"

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

// Runs the work of warps that multiply in tiles on the host: every block, every warp, every lane, and the
// tensor cores' products by their model (model_warp.h).

template <typename Tile>
using LanesOf = std::array<Tile, cuda::kWarpLanes>;

// Adds left times right of all lanes.
inline void multiply_add(const LanesOf<cuda::LeftTile>& left, const LanesOf<cuda::RightTile>& right,
                         LanesOf<cuda::SumTile>& sums) {
  ModelWarp::Words<4> a;
  ModelWarp::Words<2> b;
  ModelWarp::Sums products;
  for (std::size_t lane = 0; lane < cuda::kWarpLanes; ++lane) {
    std::ranges::copy(left[lane].pairs, a.values[lane]);
    std::ranges::copy(right[lane].pairs, b.values[lane]);
    std::ranges::copy(sums[lane].values, products.values[lane]);
  }
  ModelWarp::multiply_add<0>(products, a, b);
  for (std::size_t lane = 0; lane < cuda::kWarpLanes; ++lane) {
    std::ranges::copy(products.values[lane], sums[lane].values);
  }
}

template <typename Work>
class HostTiles {
 public:
  HostTiles(const Work& work, std::int64_t max_blocks)
      : work_(work),
        grid_(cuda::warp_grid(work.convolution.pixels, work.outputs, kWidth, Work::kRows, max_blocks)) {}

  const cuda::WarpGrid& grid() const { return grid_; }

  void forward() const {
    each_warp([&](std::int64_t, int, const cuda::WarpPlace& at) {
      const auto own = lanes_of(at);
      std::vector<std::uint32_t> shared(Work::kSharedPairs);
      each_group(at, [&](std::int64_t row) {
        for (int m = 0; m < Work::kRowTiles; ++m) {
          for (int t = 0; t < kTiles; ++t) {
            const auto sums = products(own, row + m * cuda::kTileRows, t);
            each_lane(
                [&](int lane) { work_.collect(sums[index(lane)], m * cuda::kTileRows, t, lane, shared.data()); });
          }
        }
        each_lane([&](int lane) { work_.write(row, at.column, lane, shared.data()); });
      });
    });
  }

  // Calls take(row_block, column, totals of the lanes that hold the column) for each block and column.
  template <typename Take>
  void reduce(const Take& take) const {
    using Total = typename Work::Total;
    std::vector<std::vector<Total>> columns(kWidth, std::vector<Total>(cuda::kWarpSums));
    each_warp([&](std::int64_t, int warp, const cuda::WarpPlace& at) {
      std::array<std::array<Total[2], kTiles>, cuda::kWarpLanes> totals{};
      const auto own = lanes_of(at);
      each_group(at, [&](std::int64_t row) {
        for (int t = 0; t < kTiles; ++t) {
          const auto sums = products(own, row, t);
          each_lane([&](int lane) {
            work_.add(sums[index(lane)], work_.gradients(row, at.column, lane).pairs[t],
                      totals[index(lane)][index(t)]);
          });
        }
      });
      each_lane([&](int lane) {
        for (int c = 0; c < 2 * kTiles; ++c) {
          const int column = c / 2 * cuda::kTileColumns + 2 * (lane % 4) + c % 2;
          columns[index(column)][index(warp * 8 + lane / 4)] = totals[index(lane)][index(c / 2)][c % 2];
        }
      });
      if (warp + 1 < cuda::WarpGrid::kWarps) return;
      for (int c = 0; c < kWidth; ++c) take(at.row_block, at.column + c, columns[index(c)]);
    });
  }

 private:
  static constexpr int kWidth = decltype(Work::convolution)::kWidth, kTiles = kWidth / cuda::kTileColumns;
  using Own = typename decltype(Work::convolution)::Own;

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  template <typename Function>
  static void each_lane(const Function& function) {
    for (int lane = 0; lane < cuda::kWarpLanes; ++lane) function(lane);
  }
  template <typename Function>
  void each_warp(const Function& function) const {
    for (std::int64_t block = 0; block < grid_.blocks(); ++block) {
      for (int warp = 0; warp < cuda::WarpGrid::kWarps; ++warp) {
        function(block, warp, cuda::warp_place(grid_, block, warp, Work::kRows));
      }
    }
  }
  template <typename Function>
  static void each_group(const cuda::WarpPlace& at, const Function& function) {
    for (std::int64_t row = at.first_row; row < at.end_row; row += cuda::WarpGrid::kWarps * Work::kRows) {
      function(row);
    }
  }
  LanesOf<Own> lanes_of(const cuda::WarpPlace& at) const {
    LanesOf<Own> own;
    each_lane([&](int lane) { own[index(lane)] = work_.convolution.begin(at.column, lane); });
    return own;
  }
  LanesOf<cuda::SumTile> products(const LanesOf<Own>& own, std::int64_t row, int tile) const {
    LanesOf<cuda::LeftTile> left;
    LanesOf<cuda::RightTile> right;
    LanesOf<cuda::SumTile> sums{};
    each_lane([&](int lane) {
      left[index(lane)] = work_.convolution.windows(own[index(lane)], row, lane);
      right[index(lane)] = own[index(lane)].weights[tile];
    });
    multiply_add(left, right, sums);
    return sums;
  }

  const Work& work_;
  cuda::WarpGrid grid_;
};

}  // namespace headrace::test
