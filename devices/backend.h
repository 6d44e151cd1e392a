// One vendor's stack: says what it has and opens it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/collective.h"
#include "headrace/devices/device.h"
#include "headrace/devices/device_group.h"

namespace HEADRACE_API headrace {

// A line of `headrace doctor`.
struct Finding {
  std::string name;  // "CUDA driver"
  bool found = false;
  std::string version;  // or a description; empty where unknown
  std::string hint;     // what to do when it is missing; empty when nothing is
};

// Stateless and thread-safe; lives for the whole process.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;  // "cpu", "cuda": the word before the colon in a device spec
  // The devices present, without opening them, those that are unusable included. Empty when the driver is missing;
  // never throws for that.
  virtual std::vector<DeviceInfo> list() const = 0;
  // Opens `ordinal`, a usable one, under the given unique name, as one of `local_replicas` that share it. Throws
  // DeviceError.
  virtual std::unique_ptr<Device> open(int ordinal, const std::string& name, int local_replicas) const = 0;
  // For a group that consists of this backend's devices. Throws DeviceError where it cannot sum over them.
  virtual std::unique_ptr<Collective> create_collective(DeviceGroup& devices) const = 0;
  virtual std::vector<Finding> diagnose() const = 0;
};

}  // namespace headrace
