#include "headrace/devices/base/remote/waiting.h"

#include "headrace/devices/base/remote.h"

namespace headrace::remote {
namespace {

thread_local const std::function<void()>* wait_poll = nullptr;
thread_local bool abandonable = false;

}  // namespace

AbandonableThread::AbandonableThread() noexcept { abandonable = true; }

const std::function<void()>* set_wait_poll(const std::function<void()>* look) noexcept {
  return std::exchange(wait_poll, look);
}

void poll_while_waiting() {
  if (wait_poll != nullptr) (*wait_poll)();
}

bool is_abandonable() noexcept { return abandonable; }

}  // namespace headrace::remote
