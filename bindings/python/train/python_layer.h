// Layers that are Python objects: headrace/_layers.py has their class.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/train/layers.h"

namespace headrace::python {

// Returns the layer for inputs of these shapes. The streams' threads call its methods with the interpreter's lock,
// on arrays that are the replica's memory; Python's exceptions end the run and are raised by it. Throws
// ConfigError unless the host reads and writes the memory of all devices in place. REQUIRES: the GIL.
std::shared_ptr<const Layer> python_layer(const nanobind::object& layer, const std::string& name,
                                          const std::vector<Shape>& inputs, const DeviceGroup& devices);

// Returns the makers of the layers in a dict of kinds and functions of the text that config() became. REQUIRES:
// the GIL; `devices` lives as long as the makers.
LayerMakers python_layer_makers(const nanobind::dict& factories, const DeviceGroup& devices);

}  // namespace headrace::python
