// Muon's passes over memory; cuBLASLt does the products between them. Private to the CUDA backend.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "headrace/devices/cuda/math/muon_layout.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

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
cudaError_t muon_momentum(const MuonBatch& batch, cudaStream_t stream);
// Adds the parts in order and computes 1 / (|u| + epsilon) and the factor of w: sqrt(O) / |w|, or 1 if w is 0,
// the step keeps its norm or none is normalized, less the decay.
cudaError_t muon_norms(const MuonBatch& batch, const StepScalars* scalars, cudaStream_t stream);
// x = u / (|u| + epsilon), padded.
cudaError_t muon_load(const MuonBatch& batch, cudaStream_t stream);
// w = w scale - learning rate * factor * x, and its copy
cudaError_t muon_apply(const MuonBatch& batch, const StepScalars* scalars, cudaStream_t stream);

}  // namespace headrace::cuda
