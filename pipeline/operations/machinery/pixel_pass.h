// One pass over the pixels of an image: padded crop, centre crop, mirroring, then values, then layout. The same
// description is run by the host (pixel_step.h) and, as a device pass (device_pass.h), by a device's kernel; each
// operation's file states, once for both, whether it can join an existing pass.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/shape.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/pipeline/operations/kernels/pixel_kernels.h"
#include "headrace/pipeline/operations/machinery/crop_window.h"
#include "headrace/pipeline/operations/machinery/definition.h"

namespace headrace {

struct PlannedHole {
  std::variant<Cutout, RandomErasing> options;
  std::uint16_t number = 0;
};
struct PlannedTone {
  BrightnessContrast options;
  std::uint16_t number = 0;

  // Draws a record's tone from the operation's random numbers for it.
  PixelTone draw(Philox& random) const;
};

// Additional abilities of the executor of a pass.
struct PassAbilities {
  bool narrows = false;  // f32 to u8
  bool cuts = false;     // holes
  bool tones = false;
};
inline constexpr PassAbilities kHostPass{.narrows = true, .cuts = true};
inline constexpr PassAbilities kDevicePass{.tones = true};

struct PixelPass {
  // An empty pass over `input`.
  PixelPass(const Field& input, const PassAbilities& who);

  // Adds the operation. Returns false, and changes nothing, if it needs a separate pass after this one.
  bool add(const OperationDefinition& operation, const OperationPlace& place);

  // Returns whether values differ from those read.
  bool changes_values() const noexcept { return scale.has_value() || tone.has_value(); }

  PassAbilities abilities;
  DType from_type, to_type;
  bool image = false;  // rank 3; otherwise one long row of elements
  ImageLayout from_layout, to_layout;
  std::int64_t channels = 1;  // for scaling values; 1: all alike
  WindowChooser window;       // applied first
  std::optional<ChannelScale> scale;
  std::optional<PlannedTone> tone;  // applied after scaling
  std::vector<PlannedHole> holes;   // cut last, into the result
  bool flat = false;
};

// Returns the scaling that normalises elements of type `from` (u8 or f32), for `channels` channels.
ChannelScale scale_of(const Normalize& options, DType from, std::int64_t channels);

}  // namespace headrace
