// A point in a stream's work. Recorded by a stream, waited for by streams or by the host.
#pragma once

namespace headrace {

// Thread-safe. An event that was never recorded counts as complete; recording again moves it.
class Event {
 public:
  virtual ~Event() = default;

  // True when all work that preceded the last record has finished. Never blocks.
  virtual bool ready() const = 0;
  // Blocks the calling thread until ready(). Does not report the work's errors: the stream does.
  virtual void wait() const = 0;
};

}  // namespace headrace
