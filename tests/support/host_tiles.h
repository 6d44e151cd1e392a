// Runs the work of warps that multiply in tiles on the host: every block, every warp, every lane, and the
// tensor cores' products by their model (model_warp.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "headrace/devices/cuda/math/warp_tiles.h"
#include "headrace/tests/support/model_warp.h"

namespace headrace::test {

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
