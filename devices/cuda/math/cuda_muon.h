// The Muon optimizer on a GPU. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <string>

#include "headrace/devices/cuda/math/cublaslt_matmul.h"
#include "headrace/devices/cuda/math/muon_kernels.h"
#include "headrace/devices/cuda/math/stream_scratch.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// The matrices of a call go through the iterations together, padded to the largest of them, in batches of at most
// kMaxMuonBatch. X, A and the polynomial are stored in bf16, norms are summed in double, all in a fixed order.
// Weights are rescaled in every call. Thread-safe over streams; throws DeviceError and ConfigError.
class CudaMuon {
 public:
  CudaMuon(int ordinal, std::string device_name);

  void update(cudaStream_t stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
              const StepScalars* scalars);

 private:
  void update_batch(cudaStream_t stream, MuonBatch& batch, const MuonOptions& options, const StepScalars* scalars);
  // Leaves the result in batch.x; `other` has x's size, `a` and `polynomial` hold (count, rows, rows) each.
  void iterate(cudaStream_t stream, MuonBatch& batch, const MuonOptions& options, __nv_bfloat16* other,
               __nv_bfloat16* a, __nv_bfloat16* polynomial);

  int ordinal_;
  std::string device_;
  CublasLtMatmul matmul_;
  StreamScratch scratch_;
};

}  // namespace headrace::cuda

namespace headrace {
using cuda::CudaMuon;
}  // namespace headrace
