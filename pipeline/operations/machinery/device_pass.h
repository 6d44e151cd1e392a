// The last operations on one image field, for a device: bytes arrive, and one kernel computes the batch's numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "headrace/pipeline/operations/machinery/pixel_pass.h"
#include "headrace/pipeline/operations/machinery/sample_stage.h"

namespace headrace {

struct DevicePass {
  std::size_t field = 0;               // of a sample
  std::vector<std::size_t> stages;     // its operations' places among the plan's sample stages
  Field input;                         // u8 (H, W, C), as transferred
  std::int64_t height = 0, width = 0;  // of the result
  WindowChooser window;
  ChannelScale scale;               // one per channel
  std::optional<PlannedTone> tone;  // applied after scaling
  ImageLayout layout = ImageLayout::kChannelsLast;
};

// An operation on the field and its input.
struct FieldOperation {
  std::size_t stage = 0;  // its place among the plan's sample stages
  PlannedOperation planned;
  Field before;
};

// Returns one pass for these operations, the last of which gives `result`; std::nullopt if a device cannot run
// them, or if more bytes would arrive than a finished field has.
std::optional<DevicePass> make_device_pass(std::span<const FieldOperation> operations, const Field& result);

}  // namespace headrace
