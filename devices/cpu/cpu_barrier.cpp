#include "headrace/devices/cpu/cpu_barrier.h"

#include "headrace/devices/cpu/cpu_wait.h"

namespace headrace {

bool CpuBarrier::wait() {
  // In this order, all sequentially consistent: a cancel() that this look misses will change the generation
  // that was read before it, so the wait below ends.
  const std::uint32_t generation = generation_.load();
  if (cancelled_.load()) return false;
  if (arrived_.fetch_add(1) + 1 == threads_) {
    arrived_.store(0);
    generation_.fetch_add(1);
    generation_.notify_all();
  } else {
    wait_while(generation_, generation);
  }
  return !cancelled_.load();
}

void CpuBarrier::cancel(const std::string& reason) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!cancelled_.load()) reason_ = reason;
    cancelled_.store(true);
  }
  generation_.fetch_add(1);
  generation_.notify_all();
}

std::string CpuBarrier::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

}  // namespace headrace
