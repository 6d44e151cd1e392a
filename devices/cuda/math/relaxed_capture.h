// Calls that a capturing thread may not make otherwise. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

namespace headrace::cuda {

// While it lives, this thread may allocate, build plans and use other streams although one of its streams is
// capturing; none of that becomes part of the capture. Nothing to do where no stream is capturing.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // the other one, to be exchanged
};

}  // namespace headrace::cuda
