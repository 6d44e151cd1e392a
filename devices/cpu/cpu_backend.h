// The backend that is always available.
#pragma once

#include <memory>
#include <mutex>

#include "headrace/devices/backend.h"

namespace headrace {

class OpenMpWaiting;

// Opens any number of replicas on the same CPU. The mathematics of each stream uses its share of the cores in
// OpenMP threads, at least one; HEADRACE_CPU_THREADS sets another number.
class CpuBackend final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  std::vector<DeviceInfo> list() const override;
  std::unique_ptr<Device> open(int ordinal, const std::string& name, int local_replicas) const override;
  // Creates a collective within the process that adds as one pairwise tree.
  std::unique_ptr<Collective> create_collective(DeviceGroup& devices) const override;
  std::vector<Finding> diagnose() const override;

 private:
  std::shared_ptr<OpenMpWaiting> waiting() const;

  mutable std::mutex mutex_;
  mutable std::weak_ptr<OpenMpWaiting> waiting_;  // shared by the devices that are open
};

}  // namespace headrace
