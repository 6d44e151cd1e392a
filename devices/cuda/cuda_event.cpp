#include "headrace/devices/cuda/cuda_event.h"

#include <utility>

#include "headrace/devices/cuda/cuda_check.h"

namespace headrace {
namespace {

// Returns whether the status of cudaEventElapsedTime means that events were not recorded, are not complete or have
// no time: no error, and none that a later call should find.
bool has_no_answer(cudaError_t status) {
  return status == cudaErrorNotReady || status == cudaErrorInvalidResourceHandle ||
         status == cudaErrorInvalidValue;
}

}  // namespace

CudaEvent::CudaEvent(std::string device, CudaTiming timing) : device_(std::move(device)), timing_(timing) {
  const unsigned int flags = timing == CudaTiming::kYes ? cudaEventDefault : cudaEventDisableTiming;
  CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags), device_);
}

// Fails only if the device is lost, which its streams report.
CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

bool CudaEvent::ready() const {
  const cudaError_t status = cudaEventQuery(event_);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // no error that a later call should find
    return false;
  }
  if (status != cudaSuccess) detail::throw_cuda_error(status, "cudaEventQuery", device_);
  return true;
}

void CudaEvent::wait() const { CUDA_CHECK(cudaEventSynchronize(event_), device_); }

std::optional<std::int64_t> CudaEvent::ns_since(const Event& earlier) const {
  const auto* other = dynamic_cast<const CudaEvent*>(&earlier);
  if (other == nullptr || timing_ == CudaTiming::kNo || other->timing_ == CudaTiming::kNo) return std::nullopt;
  float milliseconds = 0;
  const cudaError_t status = cudaEventElapsedTime(&milliseconds, other->event_, event_);
  if (has_no_answer(status)) {
    cudaGetLastError();
    return std::nullopt;
  }
  if (status != cudaSuccess) detail::throw_cuda_error(status, "cudaEventElapsedTime", device_);
  return static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
}

}  // namespace headrace
