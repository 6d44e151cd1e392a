#include "headrace/devices/cuda/math/cudnn_graph.h"

#include <array>
#include <memory>
#include <string>
#include <utility>

namespace headrace::cuda {
namespace {

std::string in_words(cudnnStatus_t status, const char* call) {
  std::array<char, 512> reason{};
  cudnnGetLastErrorString(reason.data(), reason.size());
  reason.back() = '\0';
  std::string text = std::string(cudnnGetErrorString(status)) + " [" + call + "]";
  if (reason.front() != '\0') text += std::string(": ") + reason.data();
  return text;
}

}  // namespace

CudnnRefusal::CudnnRefusal(cudnnStatus_t status, const char* call)
    : std::runtime_error(in_words(status, call)), status_(status) {}

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
    throw CudnnRefusal(status, call);
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  check_cudnn(cudnnBackendCreateDescriptor(type, &handle_), "cudnnBackendCreateDescriptor");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (handle_ != nullptr) cudnnBackendDestroyDescriptor(handle_);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                          const void* values) {
  check_cudnn(cudnnBackendSetAttribute(handle_, name, type, count, values), "cudnnBackendSetAttribute");
}

void CudnnDescriptor::finalize() { check_cudnn(cudnnBackendFinalize(handle_), "cudnnBackendFinalize"); }

std::int64_t CudnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                  std::int64_t room, void* values) const {
  std::int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(handle_, name, type, room, &count, values), "cudnnBackendGetAttribute");
  return count;
}

std::int64_t CudnnDescriptor::get_int64(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  get(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

void CudnnDescriptor::get(cudnnBackendAttributeName_t name, CudnnDescriptor& into) const {
  get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &into.handle_);
}

namespace {

using Extents = ConvolutionProblem::Extents;

enum class Storage { kMemory, kVirtual };  // virtual: only within the kernel

cudnnDataType_t data_type(DType dtype) { return dtype == DType::kBF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT; }

// cuDNN names axes (N, C, H, W) whatever the layout; the strides say that channels come last. It takes the number
// of groups from the channels of x and of the weights.
CudnnDescriptor tensor(std::int64_t id, const Extents& nhwc, cudnnDataType_t type, Storage storage) {
  const auto [n, h, w, c] = nhwc;
  const std::array<std::int64_t, 4> extents{n, c, h, w};
  const std::array<std::int64_t, 4> strides{h * w * c, 1, w * c, c};
  CudnnDescriptor result(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  result.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  result.set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents);
  result.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  result.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  result.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kTensorAlignment);
  if (storage == Storage::kVirtual) {
    const bool yes = true;
    result.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
  }
  result.finalize();
  return result;
}

CudnnDescriptor convolution(const ConvolutionProblem& problem) {
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  CudnnDescriptor result(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  result.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  result.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  result.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  result.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, problem.pad_before);
  result.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, problem.pad_after);
  result.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, problem.dilation);
  result.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, problem.stride);
  result.finalize();
  return result;
}

// A pass's operation and the names of its attributes.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, convolution, x, weights, y;
};

Names names(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
    case ConvolutionPass::kBackwardData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case ConvolutionPass::kBackwardWeights: break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
}

struct Ids {
  std::int64_t x, weights, y;
};

Ids ids(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward: return {kFirstOperand, kSecondOperand, kResult};
    case ConvolutionPass::kBackwardData: return {kResult, kSecondOperand, kFirstOperand};
    case ConvolutionPass::kBackwardWeights: break;
  }
  return {kFirstOperand, kResult, kSecondOperand};
}

constexpr std::int64_t kProducts = 5;  // virtual: the convolution before its bias

}  // namespace

CudnnGraph::CudnnGraph(const ConvolutionProblem& problem, cudnnHandle_t handle) {
  const Ids id = ids(problem.pass);
  const auto type = [&](std::int64_t which) {
    return data_type(which == kResult ? problem.result : problem.operands);
  };
  const auto& x = keep(tensor(id.x, problem.x, type(id.x), Storage::kMemory));
  const auto& weights = keep(tensor(id.weights, problem.weights, type(id.weights), Storage::kMemory));
  const auto& y = keep(tensor(id.y, problem.y, type(id.y), Storage::kMemory));
  if (!problem.bias) {
    add_convolution(problem, x, weights, y);
  } else {
    const auto& products = keep(tensor(kProducts, problem.y, CUDNN_DATA_FLOAT, Storage::kVirtual));
    add_convolution(problem, x, weights, products);
    const auto& bias = keep(tensor(kBias, {1, 1, 1, problem.y[3]}, CUDNN_DATA_FLOAT, Storage::kMemory));
    add_sum(products, bias, y);
  }
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const CudnnDescriptor& operation : operations_) operations.push_back(operation.handle());
  if (handle != nullptr) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
             static_cast<std::int64_t>(operations.size()), operations.data());
  graph_.finalize();
}

const CudnnDescriptor& CudnnGraph::keep(CudnnDescriptor descriptor) {
  return *kept_.emplace_back(std::make_unique<CudnnDescriptor>(std::move(descriptor)));
}

void CudnnGraph::add_convolution(const ConvolutionProblem& problem, const CudnnDescriptor& x,
                                 const CudnnDescriptor& weights, const CudnnDescriptor& y) {
  const Names name = names(problem.pass);
  CudnnDescriptor operation(name.type);
  operation.set(name.convolution, keep(convolution(problem)));
  operation.set(name.x, x);
  operation.set(name.weights, weights);
  operation.set(name.y, y);
  operation.set(name.alpha, 1.0F);
  operation.set(name.beta, 0.0F);
  operation.finalize();
  operations_.push_back(std::move(operation));
}

void CudnnGraph::add_sum(const CudnnDescriptor& a, const CudnnDescriptor& b, const CudnnDescriptor& sum) {
  CudnnDescriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  function.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  function.finalize();
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(std::move(function)));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, a);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, sum);
  operation.finalize();
  operations_.push_back(std::move(operation));
}

}  // namespace headrace::cuda
