// Muon's steps: passes over memory, and cuBLASLt's products between them. Private to the CUDA backend.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <span>
#include <string>

#include "headrace/devices/cuda/math/cublaslt_products.h"
#include "headrace/devices/cuda/math/scratch_layout.h"
#include "headrace/devices/cuda/math/stream_scratch.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// Muon's passes over memory; cuBLASLt does the products between them.

inline constexpr int kMuonBlocks = 64;  // blocks per matrix, and parts in which its norms are summed

// A batch, passed to every kernel by value. All pointers are to device memory.
struct MuonBatch {
  struct Matrix {
    float* parameters;
    __nv_bfloat16* rounded;  // null: no copy
    const float* gradients;
    float* velocity;
    MuonShape shape;
    float rate_factor;
  };
  Matrix matrices[kMaxMuonBatch];
  int count = 0;
  MuonExtent extent;
  float momentum = 0;
  bool nesterov = true, normalize = false;
  float epsilon = 0;
  float weight_decay = 0;
  int group = 0;
  double* partial_norms = nullptr;  // (count, kMuonBlocks, 2): squares of the update and of the weights
  float* scales = nullptr;          // (count, 2): of the update and of the weights
  __nv_bfloat16* x = nullptr;       // (count, rows, columns)
};

// Computes v = momentum v + g, and the sums of squares in kMuonBlocks parts.
cudaError_t muon_momentum(const MuonBatch& batch, const StepScalars* scalars, cudaStream_t stream);
// Adds the parts in order and computes 1 / (|u| + epsilon) and the factor of w: sqrt(O) / |w|, or 1 if w is 0,
// the step keeps its norm or none is normalized, less the decay.
cudaError_t muon_norms(const MuonBatch& batch, const StepScalars* scalars, cudaStream_t stream);
// x = u / (|u| + epsilon), padded.
cudaError_t muon_load(const MuonBatch& batch, cudaStream_t stream);
// w = w scale - learning rate * factor * x, and its copy
cudaError_t muon_apply(const MuonBatch& batch, const StepScalars* scalars, cudaStream_t stream);

// The Muon optimizer on a GPU.

// The matrices of a call go through the iterations together, padded to the largest of them, in batches of at most
// kMaxMuonBatch. X, A and the polynomial are stored in bf16, norms are summed in double, all in a fixed order.
// Weights are rescaled in every call. Thread-safe over streams; throws DeviceError and ConfigError.
class CudaMuon {
 public:
  explicit CudaMuon(Device& device);

  void update(cudaStream_t stream, const kernel::Muon& of);

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
