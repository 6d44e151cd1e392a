#include "headrace/devices/device_group.h"

namespace headrace {

std::string DeviceGroup::to_string() const {
  std::string text;
  for (const auto& device : devices_) {
    if (!text.empty()) text += ", ";
    text += device->info().name;
  }
  return text;
}

}  // namespace headrace
