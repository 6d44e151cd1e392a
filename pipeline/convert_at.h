// Where the bytes of images become the numbers a net is fed with.
#pragma once

namespace headrace {

// The stream's bits are the same either way.
enum class ConvertAt {
  kAuto,    // on the device wherever it can, which sends fewer bytes to it
  kHost,    // by the engine's threads, always
  kDevice,  // on the device; ConfigError where it cannot
};

}  // namespace headrace
