// Runs work for threads on a GPU. Private to the CUDA backend.
#pragma once

#include <cuda_runtime.h>

#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/cuda_launches.h"
#include "headrace/devices/cuda/math/loss_work.h"
#include "headrace/devices/cuda/math/tensor_core.cuh"
#include "headrace/devices/cuda/math/warp_tiles.h"

namespace headrace::cuda {

template <int kWidth, typename Work>
__global__ void __launch_bounds__(kFlatThreads) flat_kernel(Work work, FlatSplit split) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kFlatThreads;
  run_share<kWidth>(work, split, static_cast<std::int64_t>(blockIdx.x) * kFlatThreads + threadIdx.x, threads);
}

template <int kWidth, typename Work>
__global__ void __launch_bounds__(kColumnThreads, resident_blocks<Work>(kResidentBlocks))
    column_kernel(Work work, ColumnGrid grid) {
  run_columns<kWidth>(work, grid, column_place(grid, blockIdx.x, static_cast<int>(threadIdx.x)));
}

// One total per row block and column: a block's threads of one column merge as a tree.
template <int kWidth, typename Work>
__global__ void __launch_bounds__(kColumnThreads, resident_blocks<Work>(kReducingBlocks))
    reduce_kernel(Work work, ColumnGrid grid, typename Work::Total* block_totals) {
  using Total = typename Work::Total;
  __shared__ Total shared[kColumnThreads * kWidth];
  const int thread = static_cast<int>(threadIdx.x);
  const ColumnPlace at = column_place(grid, blockIdx.x, thread);
  Total mine[kWidth] = {};
  add_rows<kWidth>(work, grid, at, mine);
  for (int k = 0; k < kWidth; ++k) shared[thread * kWidth + k] = mine[k];
  __syncthreads();
  for (int half = grid.row_lanes / 2; half > 0; half /= 2) {
    if (at.row_lane < half) {
      const Total* other = shared + (thread + half * grid.side) * kWidth;
      for (int k = 0; k < kWidth; ++k) shared[thread * kWidth + k] = mine[k] = merged(mine[k], other[k]);
    }
    __syncthreads();
  }
  if (at.row_lane > 0 || at.column >= grid.columns) return;
  for (int k = 0; k < kWidth; ++k) block_totals[at.row_block * grid.columns + at.column + k] = mine[k];
}

// Merges kRadix times `left` totals in shared memory, written before, into the first `left`. Thread i keeps i.
template <typename Total>
__device__ void merge_shared(Total* shared, int left) {
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (thread < left) shared[thread] = radix_total(shared + thread, left);
}

// The windows of a warp's next group of rows are loaded before the current one's activations are computed.
template <int kTiles, typename Work>
__global__ void __launch_bounds__(kColumnThreads, Work::kResidentBlocks) tile_kernel(Work work, WarpGrid grid) {
  __shared__ __align__(16) std::uint32_t shared[WarpGrid::kWarps][Work::kSharedPairs];
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes, lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const WarpPlace at = warp_place(grid, blockIdx.x, warp, Work::kRows);
  const auto own = work.convolution.begin(at.column, lane);
  LeftTile windows[Work::kRowTiles];
  for (int m = 0; m < Work::kRowTiles; ++m) {
    windows[m] = work.convolution.windows(own, at.first_row + m * kTileRows, lane);
  }
  for (std::int64_t row = at.first_row; row < at.end_row; row += WarpGrid::kWarps * Work::kRows) {
    SumTile sums[Work::kRowTiles][kTiles] = {};
    for (int m = 0; m < Work::kRowTiles; ++m) {
      for (int t = 0; t < kTiles; ++t) {
        multiply_tiles(sums[m][t].values, windows[m].pairs, own.weights[t].pairs[0], own.weights[t].pairs[1]);
      }
      windows[m] = work.convolution.windows(own, row + WarpGrid::kWarps * Work::kRows + m * kTileRows, lane);
    }
    for (int m = 0; m < Work::kRowTiles; ++m) {
      for (int t = 0; t < kTiles; ++t) work.collect(sums[m][t], m * kTileRows, t, lane, shared[warp]);
    }
    __syncwarp();
    work.write(row, at.column, lane, shared[warp]);
    __syncwarp();
  }
}

// One total per row block and column.
template <int kTiles, typename Work>
__global__ void __launch_bounds__(kColumnThreads, Work::kResidentBlocks)
    tile_reduce_kernel(Work work, WarpGrid grid, typename Work::Total* block_totals) {
  using Total = typename Work::Total;
  constexpr int kWidth = kTiles * kTileColumns;
  __shared__ Total shared[kWarpSums * kWidth];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarpLanes, lane = thread % kWarpLanes;
  const WarpPlace at = warp_place(grid, blockIdx.x, warp, Work::kRows);
  const auto own = work.convolution.begin(at.column, lane);
  Total totals[kTiles][2] = {};
  LeftTile windows = work.convolution.windows(own, at.first_row, lane);
  for (std::int64_t row = at.first_row; row < at.end_row; row += WarpGrid::kWarps * Work::kRows) {
    const auto gradients = work.gradients(row, at.column, lane);
    SumTile sums[kTiles] = {};
    for (int t = 0; t < kTiles; ++t) {
      multiply_tiles(sums[t].values, windows.pairs, own.weights[t].pairs[0], own.weights[t].pairs[1]);
    }
    windows = work.convolution.windows(own, row + WarpGrid::kWarps * Work::kRows, lane);
    for (int t = 0; t < kTiles; ++t) work.add(sums[t], gradients.pairs[t], totals[t]);
  }
  for (int t = 0; t < kTiles; ++t) {
    for (int j = 0; j < 2; ++j) {
      shared[(warp * 8 + lane / 4) * kWidth + t * kTileColumns + 2 * (lane % 4) + j] = totals[t][j];
    }
  }
  for (int left = kWarpSums / kRadix * kWidth; left >= kWidth; left /= kRadix) merge_shared(shared, left);
  if (thread < kWidth) block_totals[at.row_block * grid.columns + at.column + thread] = shared[thread];
}

template <typename Work>
__global__ void __launch_bounds__(kFinishColumns* kFinishLanes)
    finish_kernel(Work work, const typename Work::Total* block_totals, std::int64_t blocks, std::int64_t columns) {
  using Wide = decltype(wide(typename Work::Total{}, typename Work::Total{}));
  __shared__ Wide shared[kFinishLanes * kFinishColumns];
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kFinishColumns + thread % kFinishColumns;
  Wide total{};
  if (column < columns) total = lane_total(block_totals, blocks, columns, column, thread / kFinishColumns);
  shared[thread] = total;
  for (int left = kFinishLanes / kRadix * kFinishColumns; left >= kFinishColumns; left /= kRadix) {
    merge_shared(shared, left);
  }
  if (thread < kFinishColumns && column < columns) {
    work.finish(column, completed(shared[thread], block_totals[column]));
  }
}

__device__ inline RowMaximum from_lane_below(const RowMaximum& of, int distance) {
  return {__shfl_down_sync(0xFFFFFFFFU, of.value, distance),
          static_cast<std::int64_t>(
              __shfl_down_sync(0xFFFFFFFFU, static_cast<unsigned long long>(of.index), distance))};
}
__device__ inline RowSums from_lane_below(const RowSums& of, int distance) {
  return {__shfl_down_sync(0xFFFFFFFFU, of.exp_sum, distance), __shfl_down_sync(0xFFFFFFFFU, of.total, distance)};
}
__device__ inline SoftSums from_lane_below(const SoftSums& of, int distance) {
  return {__shfl_down_sync(0xFFFFFFFFU, of.exp_sum, distance), __shfl_down_sync(0xFFFFFFFFU, of.targets, distance),
          __shfl_down_sync(0xFFFFFFFFU, of.weighted, distance)};
}
__device__ inline CosineSums from_lane_below(const CosineSums& of, int distance) {
  return {__shfl_down_sync(0xFFFFFFFFU, of.squares, distance),
          __shfl_down_sync(0xFFFFFFFFU, of.target_squares, distance),
          __shfl_down_sync(0xFFFFFFFFU, of.products, distance)};
}
__device__ inline RowLoss from_lane_below(const RowLoss& of, int distance) {
  return {__shfl_down_sync(0xFFFFFFFFU, of.loss, distance),
          static_cast<std::int64_t>(
              __shfl_down_sync(0xFFFFFFFFU, static_cast<unsigned long long>(of.correct), distance))};
}
__device__ inline RowMaximum of_first_lane(const RowMaximum& of) {
  return {__shfl_sync(0xFFFFFFFFU, of.value, 0),
          static_cast<std::int64_t>(__shfl_sync(0xFFFFFFFFU, static_cast<unsigned long long>(of.index), 0))};
}
__device__ inline RowSums of_first_lane(const RowSums& of) {
  return {__shfl_sync(0xFFFFFFFFU, of.exp_sum, 0), __shfl_sync(0xFFFFFFFFU, of.total, 0)};
}

__device__ inline SoftSums of_first_lane(const SoftSums& of) {
  return {__shfl_sync(0xFFFFFFFFU, of.exp_sum, 0), __shfl_sync(0xFFFFFFFFU, of.targets, 0),
          __shfl_sync(0xFFFFFFFFU, of.weighted, 0)};
}
__device__ inline CosineSums of_first_lane(const CosineSums& of) {
  return {__shfl_sync(0xFFFFFFFFU, of.squares, 0), __shfl_sync(0xFFFFFFFFU, of.target_squares, 0),
          __shfl_sync(0xFFFFFFFFU, of.products, 0)};
}
__device__ inline RowLoss of_first_lane(const RowLoss& of) {
  return {__shfl_sync(0xFFFFFFFFU, of.loss, 0),
          static_cast<std::int64_t>(__shfl_sync(0xFFFFFFFFU, static_cast<unsigned long long>(of.correct), 0))};
}

// Merges over the 32 lanes of a warp in a fixed order; all lanes get the result. REQUIRES: every lane calls it.
template <typename Total>
__device__ Total warp_total(Total mine) {
  for (int distance = kRowLanes / 2; distance > 0; distance /= 2) {
    mine = merged(mine, from_lane_below(mine, distance));
  }
  return of_first_lane(mine);
}

inline constexpr int kRowsPerBlock = 8;

// One warp per row; all lanes of a warp have the same row, so they exit together.
template <typename Work>
__global__ void __launch_bounds__(kRowsPerBlock* kRowLanes) row_kernel(Work work, std::int64_t rows) {
  const int lane = static_cast<int>(threadIdx.x) % kRowLanes;
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * kRowsPerBlock + static_cast<int>(threadIdx.x) / kRowLanes;
  if (row >= rows) return;
  const RowMaximum maximum = warp_total(work.in.maximum(row, lane));
  const auto sums = warp_total(work.in.sums(row, lane, maximum));
  work.write(row, lane, maximum, sums);
}

inline constexpr int kTotalThreads = 256;

// One block.
template <typename Work>
__global__ void __launch_bounds__(kTotalThreads) total_kernel(Work work) {
  __shared__ RowLoss shared[kTotalThreads];
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = work.part(thread, kTotalThreads);
  __syncthreads();
  for (int half = kTotalThreads / 2; half > 0; half /= 2) {
    if (thread < half) shared[thread] = merged(shared[thread], shared[thread + half]);
    __syncthreads();
  }
  if (thread == 0) work.finish(shared[0]);
}

// Submits to one stream of the current device. After a failed launch nothing more is submitted.
class CudaLauncher {
 public:
  explicit CudaLauncher(cudaStream_t stream) : stream_(stream) {}

  // Returns the first status of all launches that is not cudaSuccess.
  cudaError_t status() const { return status_; }

  template <int kWidth, typename Work>
  void flat(const Work& work, std::int64_t count) {
    const FlatSplit split = flat_split(count, kWidth);
    const std::int64_t blocks = flat_blocks(split, one_wave<&flat_kernel<kWidth, Work>>(kFlatThreads));
    if (!ready(blocks)) return;
    flat_kernel<kWidth><<<static_cast<unsigned int>(blocks), kFlatThreads, 0, stream_>>>(work, split);
    status_ = cudaGetLastError();
  }

  // Returns the matrix of `grid`, split so that it fills the device once: no bit depends on the split.
  template <int kWidth, typename Work>
  void columns(const Work& work, const ColumnGrid& grid) {
    const std::int64_t wave = one_wave<&column_kernel<kWidth, Work>>(kColumnThreads);
    const ColumnGrid here = column_grid(grid.rows, grid.columns, grid.width, wave);
    if (!ready(here.blocks())) return;
    column_kernel<kWidth><<<static_cast<unsigned int>(here.blocks()), kColumnThreads, 0, stream_>>>(work, here);
    status_ = cudaGetLastError();
  }

  // `scratch` holds one Work::Total per row block and column.
  template <int kWidth, typename Work>
  void reduce(const Work& work, const ColumnGrid& grid, void* scratch) {
    auto* block_totals = static_cast<typename Work::Total*>(scratch);
    if (!ready(grid.blocks())) return;
    reduce_kernel<kWidth>
        <<<static_cast<unsigned int>(grid.blocks()), kColumnThreads, 0, stream_>>>(work, grid, block_totals);
    status_ = cudaGetLastError();
    finish(work, block_totals, grid.row_blocks, grid.columns);
  }

  // Computes work.convolution in tiles, for as many blocks as the device holds at once: no bit depends on the
  // split.
  template <typename Work>
  void tiles(const Work& work) {
    constexpr int kTiles = decltype(work.convolution)::kWidth / kTileColumns;
    const std::int64_t wave = one_wave<&tile_kernel<kTiles, Work>>(kColumnThreads);
    const WarpGrid grid =
        warp_grid(work.convolution.pixels, work.outputs, kTiles * kTileColumns, Work::kRows, wave);
    if (!ready(grid.blocks())) return;
    tile_kernel<kTiles><<<static_cast<unsigned int>(grid.blocks()), kColumnThreads, 0, stream_>>>(work, grid);
    status_ = cudaGetLastError();
  }

  // `scratch` holds one Work::Total per row block and column.
  template <typename Work>
  void reduce_tiles(const Work& work, void* scratch) {
    constexpr int kTiles = decltype(work.convolution)::kWidth / kTileColumns;
    auto* block_totals = static_cast<typename Work::Total*>(scratch);
    const WarpGrid grid = warp_grid(work.convolution.pixels, work.outputs, kTiles * kTileColumns, Work::kRows,
                                    max_reducing_blocks<Work>());
    if (!ready(grid.blocks())) return;
    tile_reduce_kernel<kTiles>
        <<<static_cast<unsigned int>(grid.blocks()), kColumnThreads, 0, stream_>>>(work, grid, block_totals);
    status_ = cudaGetLastError();
    finish(work, block_totals, grid.row_blocks, grid.columns);
  }

  template <typename Work>
  void rows(const Work& work, std::int64_t rows) {
    const std::int64_t blocks = divided_up(rows, kRowsPerBlock);
    if (!ready(blocks)) return;
    row_kernel<<<static_cast<unsigned int>(blocks), kRowsPerBlock * kRowLanes, 0, stream_>>>(work, rows);
    status_ = cudaGetLastError();
  }

  template <typename Work>
  void total(const Work& work) {
    if (!ready(1)) return;
    total_kernel<<<1, kTotalThreads, 0, stream_>>>(work);
    status_ = cudaGetLastError();
  }

 private:
  template <typename Work>
  void finish(const Work& work, const typename Work::Total* block_totals, std::int64_t row_blocks,
              std::int64_t columns) {
    const std::int64_t blocks = divided_up(columns, kFinishColumns);
    if (!ready(blocks)) return;
    finish_kernel<<<static_cast<unsigned int>(blocks), kFinishColumns * kFinishLanes, 0, stream_>>>(
        work, block_totals, row_blocks, columns);
    status_ = cudaGetLastError();
  }

  // A grid that exceeds the maximum of a launch is an error, not a smaller launch.
  bool ready(std::int64_t blocks) {
    constexpr std::int64_t kMaxBlocks = 0x7FFFFFFF;
    if (status_ == cudaSuccess && blocks > kMaxBlocks) status_ = cudaErrorInvalidConfiguration;
    return status_ == cudaSuccess;
  }

  // Returns the blocks of kKernel that the device holds at once; 1 after a failure, when nothing is launched.
  template <auto kKernel>
  std::int64_t one_wave(int threads) {
    static ResidentBlocks resident(reinterpret_cast<const void*>(kKernel), threads);
    std::int64_t blocks = 1;
    if (status_ == cudaSuccess) status_ = resident.of_current_device(blocks);
    return blocks < 1 ? 1 : blocks;
  }

  cudaStream_t stream_;
  cudaError_t status_ = cudaSuccess;
};

// Implements CudaLaunches' submission of kernels.
template <typename Work>
void CudaLaunches::submit(Stream& stream, const char* kernel, const Work& work) {
  const std::optional<cudaStream_t> handle = enter(stream);
  if (!handle) return;
  CudaLauncher launch(*handle);
  work(launch);
  need(launch.status(), kernel);
}

template <typename Work>
void CudaLaunches::submit(Stream& stream, const char* kernel, std::size_t scratch_bytes, const Work& work) {
  const std::optional<cudaStream_t> handle = enter(stream);
  if (!handle) return;
  CudaLauncher launch(*handle);
  work(launch, scratch_.reserve(*handle, scratch_bytes));
  need(launch.status(), kernel);
}

}  // namespace headrace::cuda
