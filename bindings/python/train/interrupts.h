// Ctrl-C while the trainer runs.
#pragma once

#include <atomic>

namespace headrace::python {

// While one lives on Python's main thread, SIGINT also says stop(): a fit then ends after the present step, and
// its checkpoint is written. Python's own handler is called as ever; raise() gives what it raised. On other
// threads, and where SIGINT is ignored, nothing is watched. May be nested.
class InterruptWatch {
 public:
  InterruptWatch();  // with the interpreter's lock
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  const std::atomic<bool>* stop() const noexcept;
  // KeyboardInterrupt, where there was one. With the interpreter's lock or without.
  static void raise();

 private:
  bool outermost_ = false;
};

}  // namespace headrace::python
