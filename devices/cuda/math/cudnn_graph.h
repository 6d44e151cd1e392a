// A convolution as a graph of cuDNN's, and the descriptors that it is made of. Private to the CUDA backend.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "headrace/devices/cuda/math/convolution_problem.h"

namespace headrace::cuda {

// An owned descriptor of cuDNN's graph API.

// A refusal by cuDNN. Callers that know the device and the problem turn it into a DeviceError.
class CudnnRefusal : public std::runtime_error {
 public:
  CudnnRefusal(cudnnStatus_t status, const char* call);

  cudnnStatus_t status() const noexcept { return status_; }

 private:
  cudnnStatus_t status_;
};

// Throws CudnnRefusal with cuDNN's message unless the call succeeded.
void check_cudnn(cudnnStatus_t status, const char* call);

// Move-only. Attributes are set, then finalize() closes it for use by other descriptors. Every member throws
// CudnnRefusal.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CudnnDescriptor();

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, std::int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, float value) { set(name, CUDNN_TYPE_FLOAT, 1, &value); }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) { set(name, CUDNN_TYPE_DATA_TYPE, 1, &value); }
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_);
  }
  void finalize();

  // Returns the number of the attribute's values, and reads up to `room` of them.
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t room,
                   void* values) const;
  std::int64_t get_int64(cudnnBackendAttributeName_t name) const;
  // Copies an attribute that is a single descriptor to `into`.
  void get(cudnnBackendAttributeName_t name, CudnnDescriptor& into) const;

  cudnnBackendDescriptor_t handle() const noexcept { return handle_; }

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

// A convolution and its bias as an operation graph of cuDNN.

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
