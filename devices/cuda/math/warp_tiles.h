// Products of small matrices by the tensor cores: a warp multiplies 16 rows of 16 bf16 with 16 x 8 and adds
// f32 (tensor_core.cuh). Which lane holds what is m16n8k16's layout in PTX.
// Private to the CUDA backend.
#pragma once

#include <cstdint>

#include "headrace/devices/cuda/element.h"
#include "headrace/devices/cuda/math/column_grid.h"

namespace headrace::cuda {

inline constexpr int kWarpLanes = 32, kTileRows = 16, kTileColumns = 8, kTileDepth = 16;

// Two bf16, the first in the lower half.
HEADRACE_HOST_DEVICE std::uint32_t half_pair(BFloat16 first, BFloat16 second) {
  return static_cast<std::uint32_t>(first.bits) | static_cast<std::uint32_t>(second.bits) << 16;
}
HEADRACE_HOST_DEVICE BFloat16 half_of_pair(std::uint32_t pair, int which) {
  return {static_cast<std::uint16_t>(which == 0 ? pair : pair >> 16)};
}

// A lane's part of the tiles. With g = lane / 4 and q = lane % 4:
struct LeftTile {
  std::uint32_t pairs[4];  // pairs[h + 2 s]: row g + 8 h, depths 8 s + 2 q and the next
};
struct RightTile {
  std::uint32_t pairs[2];  // pairs[s]: column g, depths 8 s + 2 q and the next
};
struct SumTile {
  float values[4];  // values[j + 2 h]: row g + 8 h, column 2 q + j
};

// The warps' split of a matrix: a warp has `width` columns, a block `rows_per_block` rows, of which its warps
// take a group of rows each in turn. Blocks are numbered along the columns first.
struct WarpGrid {
  static constexpr int kWarps = kColumnThreads / kWarpLanes;

  std::int64_t rows, columns;  // columns: a multiple of width
  int width;
  std::int64_t across, row_blocks, rows_per_block;

  HEADRACE_HOST_DEVICE constexpr std::int64_t blocks() const { return across * row_blocks; }
};

// Returns a grid of at most max_blocks blocks, or as many as there are columns of warps if those are more.
constexpr WarpGrid warp_grid(std::int64_t rows, std::int64_t columns, int width, int group_rows,
                             std::int64_t max_blocks) {
  WarpGrid grid{};
  grid.rows = rows;
  grid.columns = columns;
  grid.width = width;
  grid.across = columns / width;
  const std::int64_t room = max_blocks / grid.across > 1 ? max_blocks / grid.across : 1;
  const std::int64_t wanted = divided_up(rows, std::int64_t{WarpGrid::kWarps} * group_rows);
  const std::int64_t blocks = wanted < room ? wanted : room;
  grid.rows_per_block = divided_up(divided_up(rows, blocks < 1 ? 1 : blocks), group_rows) * group_rows;
  if (grid.rows_per_block < group_rows) grid.rows_per_block = group_rows;
  grid.row_blocks = divided_up(rows, grid.rows_per_block);
  if (grid.row_blocks < 1) grid.row_blocks = 1;
  return grid;
}

// A warp's columns from `column` on, and its groups of rows: from first_row on, every kWarps-th below end_row.
struct WarpPlace {
  std::int64_t column, first_row, end_row, row_block;
};

HEADRACE_HOST_DEVICE constexpr WarpPlace warp_place(const WarpGrid& grid, std::int64_t block, int warp,
                                                    int group_rows) {
  const std::int64_t row_block = block / grid.across;
  const std::int64_t begin = row_block * grid.rows_per_block, end = begin + grid.rows_per_block;
  return {(block - row_block * grid.across) * grid.width, begin + std::int64_t{warp} * group_rows,
          end < grid.rows ? end : grid.rows, row_block};
}

// Each column of a block has this many sums, one for each of the eight lanes that hold it in each warp.
inline constexpr int kWarpSums = WarpGrid::kWarps * 8;

}  // namespace headrace::cuda
