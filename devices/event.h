// A point in a stream's work. Recorded by a stream, waited for by streams or by the host.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Thread-safe. An event that was never recorded counts as complete; recording again moves it. Asking for it throws
// DeviceError where the device is lost: then nobody knows what was reached.
class Event {
 public:
  virtual ~Event() = default;

  // True when all work that preceded the last record has finished. Never blocks.
  virtual bool ready() const = 0;
  // Blocks the calling thread until ready(). Does not report the work's errors: the stream does.
  virtual void wait() const = 0;

  // Nanoseconds on the device's clock from `earlier`'s last record to this one's: negative where this one came
  // first. Nothing unless both are timed events of one device, recorded and complete. Never blocks. Events that
  // cannot be compared are no error, a lost device is.
  virtual std::optional<std::int64_t> ns_since(const Event& earlier) const = 0;
};

}  // namespace headrace
