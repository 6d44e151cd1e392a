// The table of backends, and the way from a device spec to devices.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/backend.h"
#include "headrace/devices/base/api.h"
#include "headrace/devices/device_group.h"

namespace HEADRACE_API headrace {

// Returns all backends that could be loaded, the CPU first. The CUDA module (libheadrace_cuda.so) is looked for in
// $HEADRACE_CUDA_MODULE, beside libheadrace.so, beside the program, and in ../lib from there, and opened on first
// use.
const std::vector<const Backend*>& backends();

// Returns why known backends are not in backends(), one finding each; empty if all are loaded.
std::vector<Finding> missing_backends();

// The purpose for which devices are opened.
enum class DeviceNeed {
  kMemory,   // hold batches: the input engine in front of somebody else's trainer
  kKernels,  // compute: Headrace's own trainer
};

// Opens the devices that a spec names, one per replica:
//   "auto"        every usable CUDA device if they can do what `need` asks, else one CPU replica
//   "cpu", "cpu:4"        1, 4 CPU replicas
//   "cuda", "cuda:0,2"    all, or these GPUs
//   "cuda:0x4"            4 logical replicas on GPU 0
// The environment variable HEADRACE_DEVICES overrides "auto". Throws ConfigError that names a malformed, unknown
// or duplicate device and lists those present. "tpu", "rocm" etc. are reported as unsupported.
DeviceGroup open_devices(std::string_view spec = "auto", DeviceNeed need = DeviceNeed::kKernels);
// Opens devices from `table` instead of backends().
DeviceGroup open_devices(std::string_view spec, DeviceNeed need, std::span<const Backend* const> table);

// Returns the backend of `table` that opened the devices. Throws ConfigError if they are of several kinds.
const Backend& backend_of(const DeviceGroup& devices, std::span<const Backend* const> table);

// Creates a collective from `table` instead of backends().
std::unique_ptr<Collective> create_collective(DeviceGroup& devices, std::span<const Backend* const> table);

}  // namespace headrace
