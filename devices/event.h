// A point in a stream's work. Recorded by a stream, waited for by streams or by the host.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Thread-safe. An event that was never recorded counts as complete; recording again moves it. All calls throw
// DeviceError if the device is lost: then it is unknown what was reached.
class Event {
 public:
  virtual ~Event() = default;

  // Returns whether all work that preceded the last record has finished. Never blocks.
  virtual bool ready() const = 0;
  // Blocks the calling thread until ready(). The work's errors are reported by the stream, not here.
  virtual void wait() const = 0;

  // Returns the nanoseconds on the device's clock from `earlier`'s last record to this one's, negative if this one
  // came first; std::nullopt unless both are timed events of one device, recorded and complete. Never blocks.
  virtual std::optional<std::int64_t> ns_since(const Event& earlier) const = 0;
};

}  // namespace headrace
