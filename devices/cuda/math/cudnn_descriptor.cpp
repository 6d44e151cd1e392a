#include "headrace/devices/cuda/math/cudnn_descriptor.h"

#include <array>
#include <string>

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

}  // namespace headrace::cuda
