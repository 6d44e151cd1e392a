// A CUDA event without timing. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "headrace/devices/event.h"

namespace headrace {

class CudaEvent final : public Event {
 public:
  // On the current device, called `device` in errors.
  explicit CudaEvent(const std::string& device);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  // A device that failed counts as ready: its stream says what happened, and nobody waits for ever.
  bool ready() const override;
  void wait() const override;

  cudaEvent_t handle() const noexcept { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace headrace
