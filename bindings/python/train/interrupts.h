// Handles Ctrl-C while the trainer runs.
#pragma once

#include <atomic>

namespace headrace::python {

// While one lives on Python's main thread, SIGINT also calls stop(): a fit then ends after the current step, and
// its checkpoint is written. Python's own handler is called as usual; raise() rethrows its exception. Does nothing
// on other threads, or if SIGINT is ignored. May be nested.
class InterruptWatch {
 public:
  InterruptWatch();  // REQUIRES: the interpreter's lock
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  const std::atomic<bool>* stop() const noexcept;
  // Throws KeyboardInterrupt if there was one. Called with or without the interpreter's lock.
  static void raise();

 private:
  bool outermost_ = false;
};

}  // namespace headrace::python
