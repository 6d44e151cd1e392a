#include "headrace/devices/cuda/current_device.h"

#include <cuda_runtime_api.h>

#include "headrace/devices/cuda/cuda_check.h"

namespace headrace {

// Setting a device makes a context on it: one that is current already is not set again, nor is it restored.
CurrentDevice::CurrentDevice(int ordinal, const std::string& name) : ordinal_(ordinal) {
  CUDA_CHECK(cudaGetDevice(&before_), name);
  if (before_ != ordinal_) CUDA_CHECK(cudaSetDevice(ordinal_), name);
}

CurrentDevice::~CurrentDevice() {
  if (before_ != ordinal_) cudaSetDevice(before_);
}

}  // namespace headrace
