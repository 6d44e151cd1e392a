// The parts of a plan on the devices: its last operations and its samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/device_group.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/operations/machinery/device_pass.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

// The operations of a plan that the devices perform.
struct DeviceSplit {
  std::vector<DevicePass> passes;  // in order of fields; empty: the host does everything
  std::string reason;              // why it is so
};

// Throws ConfigError if conversion is required on the device and impossible.
DeviceSplit split_for_devices(const StreamPlan& plan, const DeviceGroup& devices, ConvertAt at);

// Returns the host's part of the plan, whose fields are those sent to the devices.
StreamPlan host_part(const StreamPlan& plan, const std::vector<DevicePass>& passes);

// Returns explain_plan() with the devices' operations marked, and the reason.
std::string explain_plan(const StreamPlan& plan, const DeviceSplit& split);

// The request to keep a plan's samples on the devices.
struct ResidentWish {
  Residency residency = Residency::kAuto;
  std::uint64_t epochs = 2;             // of the run: samples seen once need not be kept
  std::uint64_t budget_bytes = 0;       // on each device; 0: a quarter of its free memory
  std::uint64_t host_budget_bytes = 0;  // half of it may hold the fields kept on the host; 0: no limit
};

struct ResidentChoice {
  bool resident = false;
  std::uint64_t records = 0;     // number of records for which there is room
  std::uint64_t bytes = 0;       // on each device
  std::uint64_t host_bytes = 0;  // on the host
  std::string reason = {};       // why it is so
};

// Chooses whether to keep samples. They can be kept if the host makes the same of a record every time: the only
// random operations are those of the devices' passes. Throws ConfigError if samples must be kept and cannot be.
ResidentChoice choose_residency(const StreamPlan& plan, const DeviceSplit& split, const DeviceGroup& devices,
                                const ResidentWish& wish);

// Where the JPEGs of a field become the pixels of its rows.
struct DecodeChoice {
  std::optional<std::size_t> field;  // std::nullopt: all are decoded on the host
  Shape pixels;                      // of a row: (height, width, 3)
  std::string reason;                // why it is so
};

// The bytes of each device's memory in which it decodes.
inline constexpr std::uint64_t kDecodingBytes = std::uint64_t{64} << 20;

// Devices decode if the host's last step on the field decodes and resizes by itself, perhaps with a mirroring
// after it, and the samples are not kept. A part of the rows' pinned memory more is needed: by itself nothing is
// decoded there if that is limited. Throws ConfigError if they have to decode and cannot.
DecodeChoice choose_decoding(const StreamPlan& plan, const DeviceSplit& split, const ResidentChoice& residency,
                             const DeviceGroup& devices, ConvertAt at, bool pinned_is_limited = false);

// Return a line of explain().
std::string explain_decoding(const DecodeChoice& choice, ConvertAt at);
std::string explain_residency(const ResidentChoice& choice);

}  // namespace headrace
