// NVIDIA's stack, as a module. Private to the CUDA backend.
#pragma once

#include "headrace/devices/backend.h"

namespace headrace {

class CudaBackend final : public Backend {
 public:
  std::string name() const override { return "cuda"; }
  std::vector<DeviceInfo> list() const override;
  std::unique_ptr<Device> open(int ordinal, const std::string& name, int local_replicas) const override;
  // Replicas that share one GPU sum there; one replica a GPU sums through NCCL.
  std::unique_ptr<Collective> create_collective(DeviceGroup& devices) const override;
  std::vector<Finding> diagnose() const override;
};

}  // namespace headrace
