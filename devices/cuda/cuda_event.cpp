#include "headrace/devices/cuda/cuda_event.h"

#include "headrace/devices/cuda/cuda_check.h"

namespace headrace {

CudaEvent::CudaEvent(const std::string& device, CudaTiming timing) : timing_(timing) {
  const unsigned int flags = timing == CudaTiming::kYes ? cudaEventDefault : cudaEventDisableTiming;
  CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags), device);
}

CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

bool CudaEvent::ready() const {
  const bool pending = cudaEventQuery(event_) == cudaErrorNotReady;
  if (pending) cudaGetLastError();  // "not ready" is no error that a later call should find
  return !pending;
}

void CudaEvent::wait() const { cudaEventSynchronize(event_); }

std::optional<std::int64_t> CudaEvent::ns_since(const Event& earlier) const {
  const auto* other = dynamic_cast<const CudaEvent*>(&earlier);
  if (other == nullptr || timing_ == CudaTiming::kNo || other->timing_ == CudaTiming::kNo) return std::nullopt;
  float milliseconds = 0;
  if (cudaEventElapsedTime(&milliseconds, other->event_, event_) != cudaSuccess) {
    cudaGetLastError();  // never recorded or not complete: no error that a later call should find
    return std::nullopt;
  }
  return static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
}

}  // namespace headrace
