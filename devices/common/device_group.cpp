#include "headrace/devices/device_group.h"

namespace headrace {

DeviceGroup::DeviceGroup(std::vector<std::unique_ptr<Device>> devices) : owned_(std::move(devices)) {
  for (const auto& device : owned_) devices_.push_back(device.get());
}

DeviceGroup DeviceGroup::repeated(int times) const {
  DeviceGroup group(std::vector<std::unique_ptr<Device>>{});
  for (Device* device : devices_) {
    group.devices_.insert(group.devices_.end(), static_cast<std::size_t>(times), device);
  }
  return group;
}

std::string DeviceGroup::to_string() const {
  std::string text;
  for (const Device* device : devices_) {
    if (!text.empty()) text += ", ";
    text += device->info().name;
  }
  return text;
}

}  // namespace headrace
