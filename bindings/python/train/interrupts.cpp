#include "headrace/bindings/python/train/interrupts.h"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "headrace/bindings/python/callable.h"
#include "headrace/bindings/python/module.h"
#include "headrace/devices/base/clock.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;

std::atomic<bool> signalled{false}, terminated{false};
bool watching = false;  // by Python's main thread
constexpr std::int64_t kWaitForInputNs = 1'000'000'000;
std::atomic<std::int64_t> seen_ns{0};  // when a poll() saw the signal first; 0: none did
thread_local InterruptWatch* outermost = nullptr;
struct sigaction before_watching {};  // Python's

extern "C" void note_interrupt(int signal) {
  signalled.store(true, std::memory_order_relaxed);
  before_watching.sa_handler(signal);
}

extern "C" void note_termination(int /*signal*/) {
  terminated.store(true, std::memory_order_relaxed);
  signalled.store(true, std::memory_order_relaxed);
}

bool is_main_thread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

// Whether Python handles SIGINT itself, by a plain function.
bool is_handled(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

// A handler that was installed in the meantime stays.
void restore(int signal, void (*ours)(int), const struct sigaction& before) {
  struct sigaction now {};
  if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler == ours) sigaction(signal, &before, nullptr);
}

// REQUIRES: a signal to end the process came.
[[noreturn]] void raise_termination(const char* when) {
  const nb::gil_scoped_acquire lock;
  PySys_WriteStderr("headrace: terminated %s\n", when);
  PyErr_SetObject(PyExc_SystemExit, nb::int_(128 + SIGTERM).ptr());
  throw nb::python_error();
}

}  // namespace

InterruptWatch::InterruptWatch(bool saves) : before_(outermost) {
  if (before_ != nullptr) return;
  outermost = this;
  if (!is_main_thread() || watching) return;
  signalled.store(false);
  terminated.store(false);
  seen_ns.store(0);
  watch_signals(saves);
}

void InterruptWatch::watch_signals(bool saves) {
  if (sigaction(SIGINT, nullptr, &before_watching) == 0 && is_handled(before_watching)) {
    struct sigaction noting = before_watching;
    noting.sa_handler = note_interrupt;
    watches_ = sigaction(SIGINT, &noting, nullptr) == 0;
  }
  struct sigaction found {};
  if (saves && sigaction(SIGTERM, nullptr, &found) == 0 && found.sa_handler == SIG_DFL) {
    struct sigaction noting {};
    noting.sa_handler = note_termination;
    noting.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    watches_termination_ = sigaction(SIGTERM, &noting, nullptr) == 0;
  }
  watching = watches_ || watches_termination_;
}

InterruptWatch::~InterruptWatch() {
  if (before_ != nullptr) return;
  outermost = nullptr;
  if (!watches_ && !watches_termination_) return;
  watching = false;
  if (watches_) restore(SIGINT, note_interrupt, before_watching);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  if (watches_termination_) restore(SIGTERM, note_termination, usual);
  signalled.store(false);
}

const std::atomic<bool>* InterruptWatch::stop() noexcept {
  if (outermost == nullptr) return nullptr;
  return outermost->watches_ || outermost->watches_termination_ ? &signalled : &outermost->own_stop_;
}

void InterruptWatch::poll() {
  if (watching && signalled) {
    const auto now = static_cast<std::int64_t>(now_ns());
    std::int64_t first = 0;
    if (seen_ns.compare_exchange_strong(first, now)) first = now;
    if (now - first < kWaitForInputNs) return;
    if (terminated) raise_termination("while it waited for input");
  }
  check_signals();
}

void InterruptWatch::look() {
  try {
    check_signals();
  } catch (const nb::python_error&) {
    const nb::gil_scoped_acquire lock;
    if (!end_run()) throw;
  }
}

bool InterruptWatch::end_run() noexcept {
  if (outermost == nullptr) return false;
  if (!outermost->kept_) outermost->kept_ = std::current_exception();
  const_cast<std::atomic<bool>*>(stop())->store(true);
  return true;
}

bool InterruptWatch::keep(const nb::python_error& raised) {
  const bool interrupt = raised.matches(PyExc_KeyboardInterrupt) && watching && signalled && is_main_thread();
  return (interrupt || raised.matches(PyExc_BrokenPipeError)) && end_run();
}

void InterruptWatch::raise() {
  if (outermost != nullptr && outermost->kept_) std::rethrow_exception(std::exchange(outermost->kept_, nullptr));
  if (outermost != nullptr && outermost->watches_termination_ && terminated.exchange(false)) {
    raise_termination("after a checkpoint");
  }
  check_signals();
}

namespace {

namespace nb = nanobind;

nb::object python_stdout() { return nb::module_::import_("sys").attr("stdout"); }

bool is_our_terminal(const nb::object& output) {
  try {
    return isatty(STDOUT_FILENO) != 0 && nb::cast<int>(output.attr("fileno")()) == STDOUT_FILENO;
  } catch (const nb::python_error& raised) {  // a stream without a file, as a notebook's
    if (raised.matches(PyExc_Exception)) return false;
    throw;
  } catch (const nb::cast_error&) {
    return false;
  }
}

// Ends the run by the exception being handled.
void end_run(nb::python_error& raised) {
  if (!InterruptWatch::end_run()) raised.discard_as_unraisable("headrace's progress");
}

}  // namespace

// Progress is no reason to end a training: an output that takes no more is given none. What else Python code
// raises, an interrupt for example, ends the run.
ssize_t PythonOutput::write(void* cookie, const char* text, std::size_t size) {
  auto& lost = static_cast<PythonOutput*>(cookie)->lost_;
  const nb::gil_scoped_acquire lock;
  try {
    const nb::object output = lost ? nb::none() : python_stdout();
    if (!output.is_none()) {
      output.attr("write")(nb::bytes(text, size).attr("decode")("utf-8", "replace"));
      output.attr("flush")();
    }
  } catch (nb::python_error& raised) {
    lost = raised.matches(PyExc_OSError) || raised.matches(PyExc_ValueError);
    if (!lost) {
      end_run(raised);
    } else if (const nb::object kind = raised.type().attr("__name__");
               PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                                "sys.stdout takes no more text: %S: %S; no progress is shown", kind.ptr(),
                                raised.value().ptr()) != 0) {
      try {
        throw nb::python_error();  // warnings are errors
      } catch (nb::python_error& warning) {
        end_run(warning);
      }
    }
  }
  return static_cast<ssize_t>(size);
}

PythonOutput::PythonOutput() {
  const nb::object output = python_stdout();
  if (!output.is_none() && is_our_terminal(output)) {
    output.attr("flush")();
    return;
  }
  file_ = fopencookie(this, "w", {.read = nullptr, .write = write, .seek = nullptr, .close = nullptr});
  if (file_ == nullptr) throw std::system_error(errno, std::generic_category(), "standard output");
}

PythonOutput::~PythonOutput() {
  if (file_ != stdout) std::fclose(file_);
}

}  // namespace headrace::python
