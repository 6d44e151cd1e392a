// One vendor's stack: lists its devices and opens them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/collective.h"
#include "headrace/devices/device.h"
#include "headrace/devices/device_group.h"

namespace HEADRACE_API headrace {

class Workers;

// A line of `headrace doctor`.
struct Finding {
  std::string name;  // "CUDA driver"
  bool found = false;
  std::string version;  // or a description; empty if unknown
  std::string hint;     // what to do if it is missing; empty if nothing is
};

// Stateless and thread-safe; lives for the whole process.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;  // "cpu", "cuda": the word before the colon in a device spec
  // Returns the devices present, including unusable ones, without opening them; empty if the driver is missing.
  virtual std::vector<DeviceInfo> list() const = 0;
  // Opens device `ordinal` under the given unique name, as one of `local_replicas` that share it. Throws
  // DeviceError. REQUIRES: the device is usable.
  virtual std::unique_ptr<Device> open(int ordinal, const std::string& name, int local_replicas) const = 0;
  // Creates the collective of a group of this backend's devices. Throws DeviceError if it cannot sum over them.
  virtual std::unique_ptr<Collective> create_collective(DeviceGroup& devices) const = 0;
  // Returns whether create_world_collective() can connect these devices to those of other processes.
  virtual bool connects_processes(const DeviceGroup& /*devices*/) const { return false; }
  // Creates the collective of the group and those of all other workers, which make the same call; null if the
  // backend's collectives stay within a process. Throws ConfigError if the workers do not fit together, and
  // DeviceError.
  virtual std::unique_ptr<Collective> create_world_collective(DeviceGroup& /*devices*/,
                                                              std::shared_ptr<Workers> /*workers*/) const {
    return nullptr;
  }
  virtual std::vector<Finding> diagnose() const = 0;
};

}  // namespace headrace
