// Which operations of a plan the devices do themselves.
#pragma once

#include <string>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/operations/machinery/device_pass.h"
#include "headrace/pipeline/plan/planner.h"

namespace headrace {

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

}  // namespace headrace
