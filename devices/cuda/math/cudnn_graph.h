// A convolution and its bias as an operation graph of cuDNN. Private to the CUDA backend.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/devices/cuda/math/convolution_problem.h"
#include "headrace/devices/cuda/math/cudnn_descriptor.h"

namespace headrace::cuda {

// The tensors in plans: the two operands in the order of the pass's name (x and weights, dy and weights, x and
// dy), the result, the bias.
enum TensorId : std::int64_t { kFirstOperand = 1, kSecondOperand = 2, kResult = 3, kBias = 4 };

// Every tensor's address is a multiple of this.
inline constexpr std::int64_t kTensorAlignment = 16;

// Keeps the descriptors that the graph refers to.
class CudnnGraph {
 public:
  // For the device of `handle`, which is null if the plan is made for a described device. Throws CudnnRefusal.
  CudnnGraph(const ConvolutionProblem& problem, cudnnHandle_t handle);

  const CudnnDescriptor& descriptor() const noexcept { return graph_; }

 private:
  const CudnnDescriptor& keep(CudnnDescriptor descriptor);
  void add_convolution(const ConvolutionProblem& problem, const CudnnDescriptor& x, const CudnnDescriptor& weights,
                       const CudnnDescriptor& y);
  void add_sum(const CudnnDescriptor& a, const CudnnDescriptor& b, const CudnnDescriptor& sum);

  std::vector<std::unique_ptr<CudnnDescriptor>> kept_;
  std::vector<CudnnDescriptor> operations_;
  CudnnDescriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

}  // namespace headrace::cuda
