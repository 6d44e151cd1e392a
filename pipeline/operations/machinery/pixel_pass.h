// One pass over the pixels of an image: padded crop, centre crop, mirroring, then values, then layout. The same
// description is done by the host (pixel_step.h) and, as a device pass (device_pass.h), by a device's kernel; each
// operation says in its own file, once for both, whether it can join what is there already.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/shape.h"
#include "headrace/devices/input_kernels.h"
#include "headrace/pipeline/operations/kernels/pixel_kernels.h"
#include "headrace/pipeline/operations/machinery/crop_window.h"
#include "headrace/pipeline/operations/machinery/definition.h"

namespace headrace {

struct PlannedCutout {
  Cutout options;
  std::uint16_t number = 0;
};
struct PlannedTone {
  BrightnessContrast options;
  std::uint16_t number = 0;

  // A record's, from the operation's random numbers for it.
  PixelTone draw(Philox& random) const;
};

// What whoever does a pass can do besides.
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

  // Takes the operation in; false, and nothing changed, where it needs a pass of its own after this one.
  bool add(const OperationDefinition& operation, const OperationPlace& place);

  // Values are other than those that were read.
  bool changes_values() const noexcept { return scale.has_value() || tone.has_value(); }

  PassAbilities abilities;
  DType from_type, to_type;
  bool image = false;  // rank 3; otherwise one long row of elements
  ImageLayout from_layout, to_layout;
  std::int64_t channels = 1;  // that values are scaled by; 1: all alike
  WindowChooser window;       // first of all
  std::optional<ChannelScale> scale;
  std::optional<PlannedTone> tone;   // done to what is scaled
  std::vector<PlannedCutout> holes;  // cut last of all, into the result
  bool flat = false;
};

// What normalising elements of type `from` (u8 or f32) does to each of so many channels.
ChannelScale scale_of(const Normalize& options, DType from, std::int64_t channels);

}  // namespace headrace
