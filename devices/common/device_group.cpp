#include "headrace/devices/device_group.h"

#include <algorithm>
#include <iterator>

#include "headrace/devices/base/error.h"

namespace headrace {

DeviceGroup::DeviceGroup(std::vector<std::unique_ptr<Device>> devices) : owned_(std::move(devices)) {
  for (const auto& device : owned_) devices_.push_back(device.get());
}

bool DeviceGroup::in_host_memory() const noexcept {
  return std::ranges::all_of(devices_, [](const Device* device) { return device->info().host_memory; });
}

DeviceGroup DeviceGroup::repeated(int times) const {
  DeviceGroup group(std::vector<std::unique_ptr<Device>>{});
  for (Device* device : devices_) {
    group.devices_.insert(group.devices_.end(), static_cast<std::size_t>(times), device);
  }
  return group;
}

DeviceGroup DeviceGroup::split(int first) {
  if (first < 1 || first >= size()) {
    throw ConfigError("a group of " + std::to_string(size()) + " devices (" + to_string() +
                          ") cannot be split at device " + std::to_string(first),
                      "each part needs a device");
  }
  DeviceGroup rest(std::vector<std::unique_ptr<Device>>{});
  rest.devices_.assign(devices_.begin() + first, devices_.end());
  devices_.resize(static_cast<std::size_t>(first));
  if (owned_.empty()) return rest;  // repeated() made it
  const auto begin = owned_.begin() + first;
  rest.owned_.assign(std::make_move_iterator(begin), std::make_move_iterator(owned_.end()));
  owned_.erase(begin, owned_.end());
  return rest;
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
