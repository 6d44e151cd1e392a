// Groups of devices of a kind that only tests have.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/devices/registry.h"

namespace headrace::test {

// Each of them, "gpu:0" on, is made of a CPU replica and of what else is given.
template <typename Kind, typename... Given>
DeviceGroup devices_of(int count, const Given&... given) {
  const Backend& cpu = *backends().front();
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(std::make_unique<Kind>(cpu.open(0, "gpu:" + std::to_string(i), count), given...));
  }
  return DeviceGroup(std::move(devices));
}

}  // namespace headrace::test
