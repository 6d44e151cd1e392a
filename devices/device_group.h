// The devices of one strategy, one a replica, in replica order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/device.h"

namespace HEADRACE_API headrace {

// Move-only. Outlives everything made from it: loaders, strategies, buffers.
class DeviceGroup {
 public:
  // Owns the devices.
  explicit DeviceGroup(std::vector<std::unique_ptr<Device>> devices);

  int size() const noexcept { return static_cast<int>(devices_.size()); }
  Device& operator[](int replica) const { return *devices_.at(static_cast<std::size_t>(replica)); }

  // A group with each of these devices `times` times in a row: for a loader whose batches are divided into more
  // parts than there are devices. This group, which owns them, must outlive it.
  DeviceGroup repeated(int times) const;

  // The devices from this one on leave the group for the one that is returned, where they count from 0: one part
  // trains, the other evaluates. Before anything is made from the group; ConfigError where a part would be empty.
  DeviceGroup split(int first);

  // "cpu:0, cpu:1"
  std::string to_string() const;

 private:
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<Device*> devices_;
};

}  // namespace headrace
