// Custom parts of a saved model that Python supplies.
#pragma once

#include <nanobind/nanobind.h>

#include "headrace/devices/device_group.h"
#include "headrace/train/checkpoints.h"

namespace headrace::python {

// Returns the parts in the dict that headrace/_custom_parts.py makes of custom_objects: "losses", "metrics",
// "layers" and "optimizers". REQUIRES: the GIL; `devices` lives as long as the parts.
CustomParts custom_parts_of(const nanobind::dict& parts, const DeviceGroup& devices);

}  // namespace headrace::python
