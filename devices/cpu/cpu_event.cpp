#include "headrace/devices/cpu/cpu_event.h"

#include "headrace/devices/cpu/cpu_wait.h"

namespace headrace {

void CpuPoint::reach() noexcept {
  reached_.store(1);
  reached_.notify_all();
}

void CpuPoint::wait() const noexcept { wait_while(reached_, 0); }

bool CpuEvent::ready() const {
  const auto point = last();
  return point == nullptr || point->reached();
}

void CpuEvent::wait() const {
  if (const auto point = last()) point->wait();
}

std::shared_ptr<CpuPoint> CpuEvent::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::shared_ptr<CpuPoint> CpuEvent::renew() {
  auto point = std::make_shared<CpuPoint>();
  const std::lock_guard lock(mutex_);
  last_ = point;
  return point;
}

}  // namespace headrace
