#include "headrace/devices/cuda/cuda_event.h"

#include "headrace/devices/cuda/cuda_check.h"

namespace headrace {

CudaEvent::CudaEvent(const std::string& device) {
  CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), device);
}

CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

bool CudaEvent::ready() const {
  const bool pending = cudaEventQuery(event_) == cudaErrorNotReady;
  if (pending) cudaGetLastError();  // "not ready" is no error that a later call should find
  return !pending;
}

void CudaEvent::wait() const { cudaEventSynchronize(event_); }

}  // namespace headrace
