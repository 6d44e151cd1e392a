#include "headrace/devices/cpu/cpu_event.h"

#include "headrace/devices/base/clock.h"

namespace headrace {

void CpuPoint::reach() noexcept {
  if (timing_ == CpuTiming::kYes) reached_ns_ = now_ns();
  reached_.store(1);
  reached_.notify_all();
}

void CpuPoint::reach_failed() noexcept {
  failed_ = true;
  reach();
}

void CpuPoint::wait() const noexcept { wait_while(reached_, 0); }

std::optional<std::uint64_t> CpuPoint::reached_ns() const noexcept {
  if (timing_ == CpuTiming::kNo || !reached()) return std::nullopt;
  return reached_ns_;
}

bool CpuEvent::ready() const {
  const auto point = last();
  return point == nullptr || point->reached();
}

void CpuEvent::wait() const {
  if (const auto point = last()) point->wait();
}

std::optional<std::int64_t> CpuEvent::ns_since(const Event& earlier) const {
  const auto* other = dynamic_cast<const CpuEvent*>(&earlier);
  const auto from = other != nullptr ? other->last() : nullptr, to = last();
  if (from == nullptr || to == nullptr) return std::nullopt;
  const std::optional<std::uint64_t> began = from->reached_ns(), ended = to->reached_ns();
  if (!began || !ended) return std::nullopt;
  return static_cast<std::int64_t>(*ended) - static_cast<std::int64_t>(*began);
}

std::shared_ptr<CpuPoint> CpuEvent::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::shared_ptr<CpuPoint> CpuEvent::renew() {
  auto point = std::make_shared<CpuPoint>(timing_);
  const std::lock_guard lock(mutex_);
  last_ = point;
  return point;
}

}  // namespace headrace
