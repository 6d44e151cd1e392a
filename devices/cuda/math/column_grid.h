// Distributes a matrix (rows, columns) over blocks of threads such that each thread keeps its columns: a column's
// values are loaded once, and sums over rows need no atomics. Private to the CUDA backend.
#pragma once

#include <cstdint>

#include "headrace/devices/cuda/element.h"

namespace headrace::cuda {

// Distribution of a long array over threads: packs first, the rest one by one.
inline constexpr int kFlatThreads = 256;  // of a block

// Elements [0, packs * width) in packs, [packs * width, count) individually.
struct FlatSplit {
  std::int64_t packs;
  std::int64_t count;
  int width;
};

constexpr FlatSplit flat_split(std::int64_t count, int width) { return {count / width, count, width}; }

// Returns enough blocks for each thread to have an item, at least 1, at most max_blocks: the rest is a grid-stride
// loop.
constexpr std::int64_t flat_blocks(const FlatSplit& split, std::int64_t max_blocks) {
  const std::int64_t tail = split.count - split.packs * split.width;
  const std::int64_t items = split.packs > tail ? split.packs : tail;
  const std::int64_t blocks = (items + kFlatThreads - 1) / kFlatThreads;
  return blocks < 1 ? 1 : blocks < max_blocks ? blocks : max_blocks;
}

// Runs the share of thread `thread` of `threads`.
template <int kWidth, typename Work>
HEADRACE_HOST_DEVICE void run_share(const Work& work, const FlatSplit& split, std::int64_t thread,
                                    std::int64_t threads) {
  for (std::int64_t i = thread; i < split.packs; i += threads) work.template run<kWidth>(i * kWidth);
  for (std::int64_t i = split.packs * kWidth + thread; i < split.count; i += threads) work.template run<1>(i);
}

inline constexpr int kColumnThreads = 256;  // of a block

// The default number of resident blocks per multiprocessor (Work::kResidentBlocks), which limits a kernel's
// registers; tests/devices/cuda/kernel_budgets.txt enforces it.
inline constexpr int kResidentBlocks = 5;
inline constexpr int kReducingBlocks = 4;  // of a kernel that sums over rows

template <typename Work>
consteval int resident_blocks(int otherwise) {
  if constexpr (requires { Work::kResidentBlocks; }) return Work::kResidentBlocks;
  return otherwise;
}

// The maximum grid that sums over rows: one wave of an H100 or H200, which have 132 multiprocessors. The split
// determines the order of sums, so it depends only on the problem: bits are the same on every GPU.
inline constexpr std::int64_t kMaxReducingBlocks = 132 * kReducingBlocks;
template <typename Work>
constexpr std::int64_t max_reducing_blocks() {
  return kMaxReducingBlocks / kReducingBlocks * resident_blocks<Work>(kReducingBlocks);
}

// A block is `side` threads wide, each taking `width` neighbouring columns, and `row_lanes` rows high; further
// threads have nothing to do. Blocks are numbered along the columns first.
struct ColumnGrid {
  std::int64_t rows;
  std::int64_t columns;  // a multiple of width
  int width;
  int side;                 // no more than the columns need: the idle threads are whole warps
  int row_lanes;            // a power of two
  std::int64_t tiles;       // blocks side by side
  std::int64_t row_blocks;  // blocks above each other
  std::int64_t rows_per_block;

  HEADRACE_HOST_DEVICE constexpr std::int64_t blocks() const { return tiles * row_blocks; }
};

// A thread's columns [column, column + width) and every row_lanes-th row of [first_row, end_row). For a thread
// without work, `column` is not below the grid's columns.
struct ColumnPlace {
  std::int64_t column;
  std::int64_t first_row;
  std::int64_t end_row;
  std::int64_t row_block;
  int row_lane;
};

constexpr std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Returns a grid of at most max_blocks blocks, or as many as there are tiles if those are more.
constexpr ColumnGrid column_grid(std::int64_t rows, std::int64_t columns, int width,
                                 std::int64_t max_blocks = kMaxReducingBlocks) {
  constexpr std::int64_t kRowsPerThread = 4;  // worth its thread
  ColumnGrid grid{};
  grid.rows = rows;
  grid.columns = columns;
  grid.width = width;
  const std::int64_t across = divided_up(columns, width);
  grid.side = across < kColumnThreads ? static_cast<int>(across) : kColumnThreads;
  grid.row_lanes = 1;
  while (2 * grid.row_lanes * grid.side <= kColumnThreads) grid.row_lanes *= 2;
  grid.tiles = divided_up(columns, grid.side * static_cast<std::int64_t>(width));
  const std::int64_t room = max_blocks / grid.tiles > 1 ? max_blocks / grid.tiles : 1;
  const std::int64_t wanted = divided_up(rows, grid.row_lanes * kRowsPerThread);
  const std::int64_t blocks = wanted < 1 ? 1 : wanted < room ? wanted : room;
  grid.rows_per_block = divided_up(rows, blocks);
  if (grid.rows_per_block < 1) grid.rows_per_block = 1;
  grid.row_blocks = divided_up(rows, grid.rows_per_block);
  if (grid.row_blocks < 1) grid.row_blocks = 1;
  return grid;
}

HEADRACE_HOST_DEVICE constexpr ColumnPlace column_place(const ColumnGrid& grid, std::int64_t block, int thread) {
  const std::int64_t row_block = block / grid.tiles;
  const std::int64_t tile = block - row_block * grid.tiles;
  const int row_lane = thread / grid.side;
  const std::int64_t begin = row_block * grid.rows_per_block;
  const std::int64_t end = begin + grid.rows_per_block;
  const int beside = thread - row_lane * grid.side;
  return {row_lane < grid.row_lanes ? (tile * grid.side + beside) * grid.width : grid.columns, begin + row_lane,
          end < grid.rows ? end : grid.rows, row_block, row_lane};
}

// Stands for no values per column.
struct Nothing {};

// Calls work.run(own, row, column) for each place of the thread, `own` being the result of work.begin(column).
template <int kWidth, typename Work>
HEADRACE_HOST_DEVICE void run_columns(const Work& work, const ColumnGrid& grid, const ColumnPlace& at) {
  if (at.column >= grid.columns) return;
  const auto own = work.template begin<kWidth>(at.column);
  for (std::int64_t row = at.first_row; row < at.end_row; row += grid.row_lanes) {
    work.template run<kWidth>(own, row, at.column);
  }
}

template <typename Work>
consteval bool one_row_at_once() {
  if constexpr (requires { Work::kOneRowAtOnce; }) return Work::kOneRowAtOnce;
  return false;
}

// Adds the thread's rows below work.rows() to `totals`, one per column, in order. Two per round: the loads of both
// are issued before the first is added. Work without registers for two sets kOneRowAtOnce.
template <int kWidth, typename Work>
HEADRACE_HOST_DEVICE void add_rows(const Work& work, const ColumnGrid& grid, const ColumnPlace& at,
                                   typename Work::Total (&totals)[kWidth]) {
  if (at.column >= grid.columns) return;
  const std::int64_t real = work.rows();
  const std::int64_t end = real < at.end_row ? real : at.end_row;
  const auto own = work.template begin<kWidth>(at.column);
  std::int64_t row = at.first_row;
  if constexpr (!one_row_at_once<Work>()) {
    for (; row + grid.row_lanes < end; row += 2 * grid.row_lanes) {
      work.template add<kWidth>(own, totals, row, at.column);
      work.template add<kWidth>(own, totals, row + grid.row_lanes, at.column);
    }
  }
  HEADRACE_ROLLED
  for (; row < end; row += grid.row_lanes) work.template add<kWidth>(own, totals, row, at.column);
}

}  // namespace headrace::cuda
