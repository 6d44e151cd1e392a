// Parts of a net or a training that are Python objects: their classes are in headrace/_layers.py,
// headrace/_update_rules.py and headrace/_objectives.py. All functions need the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/layers.h"

namespace headrace::python {

// Returns the layer for inputs of these shapes. The streams' threads call its methods with the interpreter's lock,
// on arrays that are the replica's memory; Python's exceptions end the run and are raised by it. Throws
// ConfigError unless the host reads and writes the memory of all devices in place.
std::shared_ptr<const Layer> python_layer(const nanobind::object& layer, const std::string& name,
                                          const std::vector<Shape>& inputs, const DeviceGroup& devices);

// Returns the makers of the layers in a dict of kinds and functions of the text that config() became. REQUIRES:
// `devices` lives as long as the makers.
LayerMakers python_layer_makers(const nanobind::dict& factories, const DeviceGroup& devices);

// Returns the makers of the rules of the optimizers in a dict, by name. A maker throws ConfigError if the file has
// other options than its optimizer's rule. Throws ConfigError if the rule of an optimizer is one of the library's.
UpdateMakers python_rule_makers(const nanobind::dict& optimizers);

// Returns the parts in the dict that headrace/_custom_parts.py makes of custom_objects: "losses", "metrics",
// "layers" and "optimizers". REQUIRES: `devices` lives as long as the parts.
CustomParts custom_parts_of(const nanobind::dict& parts, const DeviceGroup& devices);

}  // namespace headrace::python
