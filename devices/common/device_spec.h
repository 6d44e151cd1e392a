// Parses device specs. Which devices exist is the registry's concern.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace {

struct DeviceSpec {
  struct Item {
    int ordinal = 0;
    int local_replicas = 1;  // logical replicas on this one device
  };

  std::string backend;      // "auto", "cpu", "cuda", ...: the word before the colon
  std::vector<Item> items;  // empty: every device of the backend
};

// "auto", "cpu", "cpu:4" (a count: one item with 4 replicas), "cuda", "cuda:0,2", "cuda:0x4". Throws ConfigError
// naming the part for anything else, and for a device named twice.
DeviceSpec parse_device_spec(std::string_view spec);

}  // namespace headrace
