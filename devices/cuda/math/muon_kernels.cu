#include <algorithm>
#include <cstdint>

#include "headrace/devices/cuda/math/cuda_muon.h"

namespace headrace::cuda {
namespace {

constexpr int kThreads = 256;

// Returns the sum over the block's threads, in a fixed order; complete in thread 0.
__device__ double block_sum(double value, double* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  const double sum = shared[0];
  __syncthreads();  // before the next sum overwrites it
  return sum;
}

// blockIdx.y is the matrix; its blocks stride over the elements.
__global__ void momentum_kernel(MuonBatch batch, const StepScalars* scalars) {
  __shared__ double shared[kThreads];
  const MuonBatch::Matrix& matrix = batch.matrices[blockIdx.y];
  const std::int64_t elements = matrix.shape.outputs * matrix.shape.inputs;
  const bool failed = scalars->failed();
  double updates = 0;
  double weights = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < elements;
       i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const float g = matrix.gradients[i];
    const float v = batch.momentum * matrix.velocity[i] + g;
    if (!failed) matrix.velocity[i] = v;
    const double u = muon_update(g, v, batch.momentum, batch.nesterov);
    const double w = matrix.parameters[i];
    updates += u * u;
    weights += w * w;
  }
  updates = block_sum(updates, shared);
  weights = block_sum(weights, shared);
  if (threadIdx.x != 0) return;
  double* out = batch.partial_norms + (static_cast<std::int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * 2;
  out[0] = updates;
  out[1] = weights;
}

// One thread per matrix: there are few parts.
__global__ void norms_kernel(MuonBatch batch, const StepScalars* scalars) {
  const int which = static_cast<int>(threadIdx.x);
  if (which >= batch.count) return;
  const double* parts = batch.partial_norms + static_cast<std::int64_t>(which) * kMuonBlocks * 2;
  double updates = 0;
  double weights = 0;
  for (int i = 0; i < kMuonBlocks; ++i) {
    updates += parts[2 * i];
    weights += parts[2 * i + 1];
  }
  const auto outputs = static_cast<double>(batch.matrices[which].shape.outputs);
  batch.scales[2 * which] = static_cast<float>(1.0 / (sqrt(updates) + static_cast<double>(batch.epsilon)));
  const bool keeps_norm = !batch.normalize || (scalars->kept_norms >> batch.group & 1) != 0;
  const float to_norm = weights > 0 && !keeps_norm ? static_cast<float>(sqrt(outputs) / sqrt(weights)) : 1.0F;
  batch.scales[2 * which + 1] = to_norm * (1.0F - scalars->learning_rates[batch.group] * batch.weight_decay);
}

__global__ void load_kernel(MuonBatch batch) {
  const MuonBatch::Matrix& matrix = batch.matrices[blockIdx.y];
  const std::int64_t positions = batch.extent.elements();
  const float scale = batch.scales[2 * blockIdx.y];
  __nv_bfloat16* x = batch.x + static_cast<std::int64_t>(blockIdx.y) * positions;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < positions;
       i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const std::int64_t element = element_at(matrix.shape, batch.extent, i);
    float value = 0;
    if (element >= 0) {
      value =
          muon_update(matrix.gradients[element], matrix.velocity[element], batch.momentum, batch.nesterov) * scale;
    }
    x[i] = __float2bfloat16_rn(value);
  }
}

__global__ void apply_kernel(MuonBatch batch, const StepScalars* scalars) {
  if (scalars->failed()) return;
  const MuonBatch::Matrix& matrix = batch.matrices[blockIdx.y];
  const std::int64_t elements = matrix.shape.outputs * matrix.shape.inputs;
  const float learning_rate = scalars->learning_rates[batch.group] * matrix.rate_factor;
  const float scale = batch.scales[2 * blockIdx.y + 1];
  const __nv_bfloat16* x = batch.x + static_cast<std::int64_t>(blockIdx.y) * batch.extent.elements();
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < elements;
       i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const float update = __bfloat162float(x[position_of(matrix.shape, batch.extent, i)]);
    const float w = matrix.parameters[i] * scale - learning_rate * update;
    matrix.parameters[i] = w;
    if (matrix.rounded != nullptr) matrix.rounded[i] = __float2bfloat16_rn(w);
  }
}

dim3 grid(const MuonBatch& batch) { return {kMuonBlocks, static_cast<unsigned int>(batch.count), 1}; }

}  // namespace

cudaError_t muon_momentum(const MuonBatch& batch, const StepScalars* scalars, cudaStream_t stream) {
  momentum_kernel<<<grid(batch), kThreads, 0, stream>>>(batch, scalars);
  return cudaGetLastError();
}

cudaError_t muon_norms(const MuonBatch& batch, const StepScalars* scalars, cudaStream_t stream) {
  norms_kernel<<<1, kMaxMuonBatch, 0, stream>>>(batch, scalars);
  return cudaGetLastError();
}

cudaError_t muon_load(const MuonBatch& batch, cudaStream_t stream) {
  load_kernel<<<grid(batch), kThreads, 0, stream>>>(batch);
  return cudaGetLastError();
}

cudaError_t muon_apply(const MuonBatch& batch, const StepScalars* scalars, cudaStream_t stream) {
  apply_kernel<<<grid(batch), kThreads, 0, stream>>>(batch, scalars);
  return cudaGetLastError();
}

}  // namespace headrace::cuda
