// A CUDA event, with or without timing. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "headrace/devices/event.h"

namespace headrace {

enum class CudaTiming { kNo, kYes };

class CudaEvent final : public Event {
 public:
  // Creates an event on the current device, called `device` in errors.
  CudaEvent(std::string device, CudaTiming timing);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  bool ready() const override;
  void wait() const override;
  std::optional<std::int64_t> ns_since(const Event& earlier) const override;

  cudaEvent_t handle() const noexcept { return event_; }

 private:
  std::string device_;
  CudaTiming timing_;
  cudaEvent_t event_ = nullptr;
};

}  // namespace headrace
