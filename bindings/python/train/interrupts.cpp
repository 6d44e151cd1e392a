#include "headrace/bindings/python/train/interrupts.h"

#include <csignal>
#include <cstdint>
#include <exception>
#include <utility>

#include "headrace/bindings/python/errors.h"
#include "headrace/devices/base/clock.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;

std::atomic<bool> interrupted{false};
bool watching = false;  // by Python's main thread
constexpr std::int64_t kWaitForInputNs = 1'000'000'000;
std::atomic<std::int64_t> seen_ns{0};            // when a poll() saw the interrupt first; 0: none did
thread_local std::exception_ptr kept_interrupt;  // an interrupt, for raise()
struct sigaction before_watching {};             // Python's

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
  kept_interrupt = nullptr;
  seen_ns.store(0);
  if (sigaction(SIGINT, nullptr, &before_watching) != 0 || !is_handled(before_watching)) return;
  struct sigaction noting = before_watching;
  noting.sa_handler = note_interrupt;
  outermost_ = watching = sigaction(SIGINT, &noting, nullptr) == 0;
}

InterruptWatch::~InterruptWatch() {
  if (!outermost_) return;
  watching = false;
  kept_interrupt = nullptr;
  struct sigaction now {};
  // A handler that was installed in the meantime stays.
  if (sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler == note_interrupt) {
    sigaction(SIGINT, &before_watching, nullptr);
  }
  interrupted.store(false);
}

const std::atomic<bool>* InterruptWatch::stop() const noexcept { return watching ? &interrupted : nullptr; }

void InterruptWatch::poll() {
  if (watching && interrupted) {
    const auto now = static_cast<std::int64_t>(now_ns());
    std::int64_t first = 0;
    if (seen_ns.compare_exchange_strong(first, now)) first = now;
    if (now - first < kWaitForInputNs) return;
  }
  check_signals();
}

bool InterruptWatch::keep(const nb::python_error& raised) {
  if (!watching || !interrupted || !is_main_thread() || !raised.matches(PyExc_KeyboardInterrupt)) return false;
  kept_interrupt = std::current_exception();
  return true;
}

void InterruptWatch::raise() {
  if (kept_interrupt) std::rethrow_exception(std::exchange(kept_interrupt, nullptr));
  check_signals();
}

}  // namespace headrace::python
