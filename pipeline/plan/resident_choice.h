// Whether the devices keep a plan's samples, and why.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/devices/device_group.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/plan/device_split.h"

namespace headrace {

struct ResidentWish {
  Residency residency = Residency::kAuto;
  std::uint64_t epochs = 2;             // of the run: what is seen once need not be kept
  std::uint64_t budget_bytes = 0;       // on each device; 0: a quarter of what is free there
  std::uint64_t host_budget_bytes = 0;  // of which half may hold what stays on the host; 0: no bound
};

struct ResidentChoice {
  bool resident = false;
  std::uint64_t records = 0;     // room for so many, where they are kept
  std::uint64_t bytes = 0;       // that they take on each device
  std::uint64_t host_bytes = 0;  // that stay on the host
  std::string reason = {};       // why it is so
};

// A sample can be kept where the host makes the same of a record every time: all random operations behind it are
// those of the devices' passes. ConfigError where samples must be kept and cannot be.
ResidentChoice choose_residency(const StreamPlan& plan, const DeviceSplit& split, const DeviceGroup& devices,
                                const ResidentWish& wish);

// A line of explain().
std::string explain_residency(const ResidentChoice& choice);

}  // namespace headrace
