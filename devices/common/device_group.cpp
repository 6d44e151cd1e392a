#include "headrace/devices/device_group.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "headrace/devices/base/error.h"

namespace headrace {

DeviceGroup::DeviceGroup(std::vector<std::unique_ptr<Device>> devices) : owned_(std::move(devices)) {
  for (const auto& device : owned_) devices_.push_back(device.get());
}

bool DeviceGroup::in_host_memory() const noexcept {
  return std::ranges::all_of(devices_, [](const Device* device) { return device->info().host_memory; });
}

std::uint64_t DeviceGroup::free_bytes_each() const {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const Device* device : devices_) {
    const auto sharing = std::ranges::count_if(devices_, [&](const Device* other) {
      return other->info().kind == device->info().kind && other->info().ordinal == device->info().ordinal;
    });
    least = std::min(least, device->free_bytes() / static_cast<std::uint64_t>(sharing));
  }
  return least;
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
