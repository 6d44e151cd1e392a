#include "headrace/bindings/python/train/interrupts.h"

#include <nanobind/nanobind.h>

#include <csignal>

#include "headrace/bindings/python/errors.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;

std::atomic<bool> interrupted{false};
bool watching = false;                // by Python's main thread
struct sigaction before_watching {};  // Python's

extern "C" void note_interrupt(int signal) {
  interrupted.store(true, std::memory_order_relaxed);
  before_watching.sa_handler(signal);
}

bool is_main_thread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

// Whether Python handles SIGINT itself, by a plain function.
bool is_handled(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

}  // namespace

InterruptWatch::InterruptWatch() {
  if (!is_main_thread() || watching) return;
  interrupted.store(false);
  if (sigaction(SIGINT, nullptr, &before_watching) != 0 || !is_handled(before_watching)) return;
  struct sigaction noting = before_watching;
  noting.sa_handler = note_interrupt;
  outermost_ = watching = sigaction(SIGINT, &noting, nullptr) == 0;
}

InterruptWatch::~InterruptWatch() {
  if (!outermost_) return;
  watching = false;
  struct sigaction now {};
  // A handler that was installed in the meantime stays.
  if (sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler == note_interrupt) {
    sigaction(SIGINT, &before_watching, nullptr);
  }
  interrupted.store(false);
}

const std::atomic<bool>* InterruptWatch::stop() const noexcept { return watching ? &interrupted : nullptr; }

void InterruptWatch::raise() { check_signals(); }

}  // namespace headrace::python
