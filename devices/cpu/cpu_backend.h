// The backend that is always there.
#pragma once

#include "headrace/devices/backend.h"

namespace headrace {

// Opens any number of replicas on the one CPU. HEADRACE_CPU_THREADS sets how many OpenMP threads the
// mathematics of each stream may use; 1 when unset.
class CpuBackend final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  std::vector<DeviceInfo> list() const override;
  std::unique_ptr<Device> open(int ordinal, const std::string& name) const override;
  std::vector<Finding> diagnose() const override;
};

}  // namespace headrace
