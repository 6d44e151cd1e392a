// Every place of a matrix is one thread's, whatever its shape.
#include "headrace/devices/cuda/math/column_grid.h"

#include <gtest/gtest.h>

#include <vector>

namespace headrace::cuda {
namespace {

struct GridCase {
  std::int64_t rows, columns;
  int width;
};

// As GPU work: counts who comes by.
struct Visits {
  std::int64_t columns;
  int* visits;

  template <int kWidth>
  Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  void run(Nothing, std::int64_t row, std::int64_t column) const {
    for (int k = 0; k < kWidth; ++k) ++visits[row * columns + column + k];
  }
};

template <int kWidth>
std::vector<int> visits(const ColumnGrid& grid) {
  std::vector<int> counts(static_cast<std::size_t>(grid.rows * grid.columns));
  for (std::int64_t block = 0; block < grid.blocks(); ++block) {
    for (int thread = 0; thread < kColumnThreads; ++thread) {
      run_columns<kWidth>(Visits{grid.columns, counts.data()}, grid, column_place(grid, block, thread));
    }
  }
  return counts;
}

TEST(ColumnGrid, EveryElementIsVisitedOnce) {
  for (const GridCase& c : {GridCase{1, 1, 1},
                            {1, 70001, 1},
                            {2, 70000, 8},
                            {9, 24, 8},
                            {1031, 24, 4},
                            {700, 40, 8},
                            {100, 1000, 8},
                            {5, 10, 1},
                            {4099, 3, 1},
                            {100000, 8, 8},
                            {300, 257, 1},
                            {77, 2048, 8},
                            {77, 2056, 8},
                            {1000, 512, 4}}) {
    const ColumnGrid grid = column_grid(c.rows, c.columns, c.width);
    const auto counts = c.width == 8 ? visits<8>(grid) : c.width == 4 ? visits<4>(grid) : visits<1>(grid);
    EXPECT_EQ(counts, std::vector<int>(counts.size(), 1)) << c.rows << "x" << c.columns << " by " << c.width;
    EXPECT_LE(grid.row_blocks * grid.tiles, std::max(kMaxReducingBlocks, grid.tiles))
        << c.rows << "x" << c.columns;
  }
}

// The norms of cifar10-fast at a batch of 2000, and the gradient of its whitening's bias.
TEST(ColumnGrid, SumsFillOneWaveAndLeaveNoTail) {
  for (const GridCase& c : {GridCase{450000, 64, 4}, {98000, 256, 4}, {18000, 256, 4}, {1922000, 24, 8}}) {
    const std::int64_t blocks = column_grid(c.rows, c.columns, c.width).blocks();
    EXPECT_LE(blocks, kMaxReducingBlocks) << c.rows << "x" << c.columns;
    EXPECT_GE(blocks, kMaxReducingBlocks * 97 / 100) << c.rows << "x" << c.columns;
  }
}

TEST(ColumnGrid, HoldsMatricesBeyond32Bits) {
  const ColumnGrid grid = column_grid(std::int64_t{1} << 33, 64, 8);
  const ColumnPlace last = column_place(grid, grid.blocks() - 1, kColumnThreads - 1);
  EXPECT_EQ(last.end_row, std::int64_t{1} << 33);
  EXPECT_EQ(last.column, 56);
  EXPECT_EQ(last.row_block, grid.row_blocks - 1);
}

struct SplitVisits {
  int* visits;

  template <int kWidth>
  void run(std::int64_t at) const {
    for (int k = 0; k < kWidth; ++k) ++visits[at + k];
  }
};

TEST(FlatSplit, EveryElementIsVisitedOnce) {
  for (const std::int64_t count : {1, 7, 8, 9, 2047, 2048, 2049, 70003}) {
    std::vector<int> counts(static_cast<std::size_t>(count));
    const FlatSplit split = flat_split(count, 8);
    const std::int64_t threads = flat_blocks(split, 20) * kFlatThreads;
    for (std::int64_t thread = 0; thread < threads; ++thread) {
      run_share<8>(SplitVisits{counts.data()}, split, thread, threads);
    }
    EXPECT_EQ(counts, std::vector<int>(counts.size(), 1)) << count;
  }
}

TEST(FlatSplit, LongArraysLoopInsteadOfAskingForMoreBlocks) {
  EXPECT_EQ(flat_blocks(flat_split(std::int64_t{1} << 40, 4), 1056), 1056);
  EXPECT_EQ(flat_blocks(flat_split(1028, 4), 1056), 2);
  EXPECT_EQ(flat_blocks(flat_split(0, 4), 1056), 1);
}

}  // namespace

}  // namespace headrace::cuda
