// Interrupts a run of the trainer on signals and on errors of Python code that writes its progress, and presents
// Python's sys.stdout as a C stream.
#pragma once

#include <nanobind/nanobind.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <exception>

namespace headrace::python {

// Handles signals, and exceptions of Python code that writes progress, while the trainer runs.

// While one lives, what is to end the run sets stop(): a fit then ends after the current step, and its checkpoint
// is written; raise() throws what it was. On Python's main thread that is SIGINT, whose handler of Python's is
// called as usual unless SIGINT is ignored, and for a run that `saves` checkpoints SIGTERM, if the program does
// not handle that itself; SystemExit(143) follows. Another SIGTERM ends the process at once. May be nested: the
// outermost of a thread counts.
class InterruptWatch {
 public:
  explicit InterruptWatch(bool saves = false);  // REQUIRES: the interpreter's lock
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  static const std::atomic<bool>* stop() noexcept;  // of this thread's run; null without one
  // Looks for signals while the run waits for input: Ctrl-C ends a wait that lasts a second longer. A batch that
  // comes in time lets the run end after its step.
  static void poll();
  // Calls the program's own handlers of signals that came; what they raise ends the run. For the run's thread.
  static void look();
  // Ends this thread's run, and keeps the exception being handled for raise(). Returns false without a run.
  // REQUIRES: the interpreter's lock.
  static bool end_run() noexcept;
  // Does so if it is the interrupt's, or that of an output that nobody reads, raised in a callback.
  static bool keep(const nanobind::python_error& raised);
  // Throws what ended the run, if anything did. Called with or without the interpreter's lock.
  static void raise();

 private:
  void watch_signals(bool saves);

  InterruptWatch* const before_;  // around this one, on this thread
  std::exception_ptr kept_;
  std::atomic<bool> own_stop_{false};
  bool watches_ = false, watches_termination_ = false;
};

// Python's sys.stdout as a C stream, so that notebooks show the output.

// Uses the process's standard output if sys.stdout is that and a terminal, so that the live bar works.
class PythonOutput {
 public:
  PythonOutput();  // REQUIRES: the interpreter's lock
  ~PythonOutput();
  PythonOutput(const PythonOutput&) = delete;
  PythonOutput& operator=(const PythonOutput&) = delete;

  std::FILE* file() const noexcept { return file_; }

 private:
  static ssize_t write(void* cookie, const char* text, std::size_t size);

  std::FILE* file_ = stdout;
  bool lost_ = false;  // takes no more text
};

}  // namespace headrace::python
