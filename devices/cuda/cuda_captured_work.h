// An instantiated CUDA graph. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/cuda/host_calls.h"
#include "headrace/devices/stream.h"

namespace headrace {

// Launched on one stream at a time: the errors of its host functions go to the stream of the last launch.
class CudaCapturedWork final : public CapturedWork {
 public:
  CudaCapturedWork() = default;
  ~CudaCapturedWork() override {
    if (executable != nullptr) cudaGraphExecDestroy(executable);
  }
  CudaCapturedWork(const CudaCapturedWork&) = delete;
  CudaCapturedWork& operator=(const CudaCapturedWork&) = delete;

  cudaGraphExec_t executable = nullptr;
  HostCalls host_calls;
  FailureSlot failure{nullptr};
};

}  // namespace headrace
