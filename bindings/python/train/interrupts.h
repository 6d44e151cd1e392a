// Handles Ctrl-C while the trainer runs.
#pragma once

#include <nanobind/nanobind.h>

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
  // Looks for signals while the run waits for input: Ctrl-C ends a wait that lasts a second longer. A batch that
  // comes in time lets the run end after its step.
  static void poll();
  // Keeps the exception being handled for raise() if it is the interrupt's: one that reached Python in a callback,
  // while the fit is to end after its step. Returns whether it did. REQUIRES: the interpreter's lock.
  static bool keep(const nanobind::python_error& raised);
  // Throws KeyboardInterrupt if there was one. Called with or without the interpreter's lock.
  static void raise();

 private:
  bool outermost_ = false;
};

}  // namespace headrace::python
