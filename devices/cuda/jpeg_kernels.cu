#include <algorithm>

#include "headrace/devices/cuda/input_kernel.h"
#include "headrace/devices/cuda/jpeg_window_work.h"
#include "headrace/devices/cuda/load_kernels.h"

namespace headrace {
namespace {

constexpr int kThreads = 128;
constexpr int kMaxRows = 65535;   // of a grid
constexpr int kMaxBlocks = 1024;  // of a row: one large window must not give all rows as many

template <typename Step>
__global__ void __launch_bounds__(kThreads) decode_rows(cuda::jpeg::Rows rows) {
  cuda::jpeg::run_row<Step>(rows, rows.first + static_cast<int>(blockIdx.y),
                            static_cast<int>(blockIdx.x * kThreads + threadIdx.x),
                            static_cast<int>(gridDim.x * kThreads));
}

}  // namespace

cudaError_t launch_jpeg_kernels(const JpegDecoding& decoding, cudaStream_t stream) {
  cudaError_t status = cudaSuccess;
  cuda::jpeg::for_each_launch(decoding, [&]<typename Step>(Step, cuda::jpeg::Rows rows, int count, int items) {
    const auto blocks = static_cast<unsigned int>(std::min((items + kThreads - 1) / kThreads, kMaxBlocks));
    for (; count > 0 && status == cudaSuccess; rows.first += kMaxRows, count -= kMaxRows) {
      const dim3 grid(blocks, static_cast<unsigned int>(std::min(count, kMaxRows)));
      decode_rows<Step><<<grid, kThreads, 0, stream>>>(rows);
      status = cudaGetLastError();
    }
  });
  return status;
}

cudaError_t load_jpeg_kernels() {
  namespace jpeg = cuda::jpeg;
  return cuda::load_kernels(decode_rows<jpeg::Prepare>, decode_rows<jpeg::ReadIntervals>,
                            decode_rows<jpeg::Transform>, decode_rows<jpeg::Colors>, decode_rows<jpeg::BlendRows>,
                            decode_rows<jpeg::BlendPixels>);
}

}  // namespace headrace
