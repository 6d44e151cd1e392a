// What of a plan the devices do and keep: its last operations, its samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/operations/machinery/device_pass.h"
#include "headrace/pipeline/plan/planner.h"

namespace headrace {

// Which operations of a plan the devices do themselves.
struct DeviceSplit {
  std::vector<DevicePass> passes;  // in order of fields; empty: the host does everything
  std::string reason;              // why it is so
};

// ConfigError where it must be on the device and cannot.
DeviceSplit split_for_devices(const StreamPlan& plan, const DeviceGroup& devices, ConvertAt at);

// What is left for the host: its fields are those that are sent to the devices.
StreamPlan host_part(const StreamPlan& plan, const std::vector<DevicePass>& passes);

// explain_plan() with what the devices do marked, and why.
std::string explain_plan(const StreamPlan& plan, const DeviceSplit& split);

// Whether the devices keep a plan's samples, and why.
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
