// Whether devices keep the samples that they are sent.
#pragma once

namespace headrace {

// The stream's bits are the same either way.
enum class Residency {
  // In runs of several epochs, or of one that repeats its records, on devices with memory of their own, where
  // nothing random is left to the host and a quarter of what is free on each device holds them.
  kAuto,
  kNever,   // every batch crosses the bus
  kAlways,  // kept, where all that is free holds them; ConfigError where they cannot be
};

}  // namespace headrace
