#include "headrace/devices/device_group.h"

#include <iterator>

#include "headrace/devices/base/error.h"

namespace headrace {

DeviceGroup DeviceGroup::split(int first) {
  if (first < 1 || first >= size()) {
    throw ConfigError("a group of " + std::to_string(size()) + " devices (" + to_string() +
                          ") cannot be split at device " + std::to_string(first),
                      "each part needs a device");
  }
  const auto begin = devices_.begin() + first;
  DeviceGroup rest(std::vector(std::make_move_iterator(begin), std::make_move_iterator(devices_.end())));
  devices_.erase(begin, devices_.end());
  return rest;
}

std::string DeviceGroup::to_string() const {
  std::string text;
  for (const auto& device : devices_) {
    if (!text.empty()) text += ", ";
    text += device->info().name;
  }
  return text;
}

}  // namespace headrace
