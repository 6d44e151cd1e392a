// Runs the GPU kernels' work in loops on the host: every block, every thread, every step of every tree, in the
// same split as a GPU (devices/cuda/math/cuda_launcher.cuh), so that the logic of the kernels is tested without
// one.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "headrace/devices/cuda/input_work.h"
#include "headrace/devices/cuda/jpeg_window_work.h"
#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/loss_work.h"
#include "headrace/devices/cuda/math/warp_tiles.h"
#include "headrace/tests/support/model_warp.h"

namespace headrace::test {

class HostLauncher {
 public:
  template <int kWidth, typename Work>
  void flat(const Work& work, std::int64_t count) const {
    const cuda::FlatSplit split = cuda::flat_split(count, kWidth);
    constexpr std::int64_t kMaxBlocks = 132 * 8;  // of a GPU; no bit depends on it
    const std::int64_t threads = cuda::flat_blocks(split, kMaxBlocks) * cuda::kFlatThreads;
    for (std::int64_t thread = 0; thread < threads; ++thread) {
      cuda::run_share<kWidth>(work, split, thread, threads);
    }
  }

  template <int kWidth, typename Work>
  void columns(const Work& work, const cuda::ColumnGrid& grid) const {
    for (std::int64_t block = 0; block < grid.blocks(); ++block) {
      for (int thread = 0; thread < cuda::kColumnThreads; ++thread) {
        cuda::run_columns<kWidth>(work, grid, cuda::column_place(grid, block, thread));
      }
    }
  }

  template <int kWidth, typename Work>
  void reduce(const Work& work, const cuda::ColumnGrid& grid, void* scratch) const {
    using Total = typename Work::Total;
    auto* block_totals = static_cast<Total*>(scratch);
    for (std::int64_t block = 0; block < grid.blocks(); ++block) {
      reduce_block<kWidth>(work, grid, block, block_totals);
    }
    finish(work, block_totals, grid.row_blocks, grid.columns);
  }

  template <typename Work>
  void tiles(const Work& work) const {
    constexpr std::int64_t kMaxBlocks = 132 * 4;  // of a GPU; no bit depends on it
    HostTiles<Work>(work, kMaxBlocks).forward();
  }

  template <typename Work>
  void reduce_tiles(const Work& work, void* scratch) const {
    auto* block_totals = static_cast<typename Work::Total*>(scratch);
    HostTiles<Work> tiles(work, cuda::max_reducing_blocks<Work>());
    tiles.reduce([&](std::int64_t row_block, std::int64_t column, const std::vector<typename Work::Total>& lanes) {
      block_totals[row_block * work.outputs + column] = radix_tree(lanes);
    });
    finish(work, block_totals, tiles.grid().row_blocks, work.outputs);
  }

  template <typename Work>
  void rows(const Work& work, std::int64_t rows) const {
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto maximum = warp_total([&](int lane) { return work.in.maximum(row, lane); });
      const auto sums = warp_total([&](int lane) { return work.in.sums(row, lane, maximum); });
      for (int lane = 0; lane < cuda::kRowLanes; ++lane) work.write(row, lane, maximum, sums);
    }
  }

  template <typename Work>
  void total(const Work& work) const {
    constexpr int kThreads = 256;
    std::vector<cuda::RowLoss> parts;
    for (int thread = 0; thread < kThreads; ++thread) parts.push_back(work.part(thread, kThreads));
    work.finish(tree_total(parts));
  }

 private:
  template <typename Work, typename Total>
  static void finish(const Work& work, const Total* block_totals, std::int64_t row_blocks, std::int64_t columns) {
    for (std::int64_t column = 0; column < columns; ++column) {
      std::vector<decltype(wide(Total{}, Total{}))> lanes;
      for (int lane = 0; lane < cuda::kFinishLanes; ++lane) {
        lanes.push_back(cuda::lane_total(block_totals, row_blocks, columns, column, lane));
      }
      work.finish(column, completed(radix_tree(lanes), block_totals[column]));
    }
  }

  template <int kWidth, typename Work>
  static void reduce_block(const Work& work, const cuda::ColumnGrid& grid, std::int64_t block,
                           typename Work::Total* block_totals) {
    using Total = typename Work::Total;
    std::vector<Total> totals(static_cast<std::size_t>(cuda::kColumnThreads * kWidth));
    for (int thread = 0; thread < cuda::kColumnThreads; ++thread) {
      Total mine[kWidth] = {};
      cuda::add_rows<kWidth>(work, grid, cuda::column_place(grid, block, thread), mine);
      for (int k = 0; k < kWidth; ++k) totals[static_cast<std::size_t>(thread * kWidth + k)] = mine[k];
    }
    for (int side = 0; side < grid.side; ++side) {
      const cuda::ColumnPlace at = cuda::column_place(grid, block, side);
      if (at.column >= grid.columns) continue;
      for (int k = 0; k < kWidth; ++k) {
        std::vector<Total> lanes;
        for (int lane = 0; lane < grid.row_lanes; ++lane) {
          lanes.push_back(totals[static_cast<std::size_t>((lane * grid.side + side) * kWidth + k)]);
        }
        block_totals[at.row_block * grid.columns + at.column + k] = tree_total(lanes);
      }
    }
  }

  // As shuffles down a warp do it; what a lane gets from beyond the last one never reaches the first.
  template <typename Part>
  static auto warp_total(const Part& part) {
    std::vector<decltype(part(0))> lanes;
    for (int lane = 0; lane < cuda::kRowLanes; ++lane) lanes.push_back(part(lane));
    return tree_total(lanes);
  }

  // Of a power of kRadix of parts.
  template <typename Total>
  static Total radix_tree(std::vector<Total> parts) {
    for (std::size_t left = parts.size() / cuda::kRadix; left > 0; left /= cuda::kRadix) {
      for (std::size_t i = 0; i < left; ++i)
        parts[i] = cuda::radix_total(parts.data() + i, static_cast<int>(left));
    }
    return parts.front();
  }

  // Of a power of two of parts: the upper half onto the lower one, until one is left.
  template <typename Total>
  static Total tree_total(std::vector<Total> parts) {
    for (std::size_t half = parts.size() / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) parts[i] = merged(parts[i], parts[i + half]);
    }
    return parts.front();
  }
};

// Work of GpuKernels, and the same with scratch memory, which is 0xFF at first: what is read before it is written
// shows as NaN.
template <typename Work>
void run_on_host(const Work& work) {
  const HostLauncher launch;
  work(launch);
}
template <typename Work>
void run_on_host(const Work& work, std::size_t scratch_bytes) {
  const HostLauncher launch;
  std::vector<std::max_align_t> scratch(scratch_bytes / sizeof(std::max_align_t) + 1);
  std::memset(scratch.data(), 0xFF, scratch_bytes);
  work(launch, scratch.data());
}

// Every thread of the fused input kernels.
template <typename Out>
void run_on_host(const cuda::ImageWork<Out>& work, ImageLayout layout) {
  constexpr std::int64_t kThreads = 1024;  // no bit depends on it
  for (std::int64_t thread = 0; thread < kThreads; ++thread) {
    if (layout == ImageLayout::kChannelsLast) {
      write_images_nhwc(work, thread, kThreads);
    } else {
      write_images_nchw(work, thread, kThreads);
    }
  }
}
template <typename Out>
void run_on_host(const cuda::WindowWork<Out>& work, ImageLayout layout) {
  const cuda::WindowGrid grid = window_grid(work, layout);
  cuda::WindowThread at{.x = 0, .y = 0, .thread = 0, .blocks_x = grid.x, .blocks_y = grid.y};
  for (at.x = 0; at.x < grid.x; ++at.x) {
    for (at.y = 0; at.y < grid.y; ++at.y) {
      for (at.thread = 0; at.thread < cuda::kWindowThreads; ++at.thread) {
        if (layout == ImageLayout::kChannelsFirst) {
          run_windows_nchw(work, at);
          continue;
        }
        cuda::by_window_pack(work, [&](auto width, auto channels, auto zeros) {
          cuda::run_windows_nhwc<width(), channels(), zeros()>(work, at);
        });
      }
    }
  }
}

// Every thread of a step of decoding, which has enough of them for a row's `items`.
template <typename Step>
void run_on_host(Step, const cuda::jpeg::Rows& rows, int count, int items) {
  for (int n = rows.first; n < rows.first + count; ++n) {
    for (int thread = 0; thread < items; ++thread) cuda::jpeg::run_row<Step>(rows, n, thread, items);
  }
}

}  // namespace headrace::test
