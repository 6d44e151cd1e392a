// The devices of one strategy, one per replica, in replica order.
#pragma once

#include <cstdint>
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
  // Returns whether all devices compute in the host's memory.
  bool in_host_memory() const noexcept;
  // Returns the free device memory that every replica may count on: those on one device share it.
  std::uint64_t free_bytes_each() const;

  // Returns a group with each device `times` times in a row, for a loader that divides its batches into more parts
  // than there are devices. This group, which owns the devices, must outlive it.
  DeviceGroup repeated(int times) const;

  // Moves the devices from `first` on to the returned group, where they count from 0: one part trains, the other
  // evaluates. Throws ConfigError if a part would be empty. A group that repeated() made only lists devices: the
  // owner must outlive both parts. REQUIRES: nothing was made from the group yet.
  DeviceGroup split(int first);

  // "cpu:0, cpu:1"
  std::string to_string() const;

 private:
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<Device*> devices_;
};

}  // namespace headrace
