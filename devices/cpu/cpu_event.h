// Events among CPU streams. Private to the CPU backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "headrace/devices/event.h"

namespace headrace {

// One record of an event: reached once, waited for by any number of threads. Lives as long as anyone holds
// it, so that a wait keeps its meaning when the event is recorded again.
class CpuPoint {
 public:
  void reach() noexcept;
  bool reached() const noexcept { return reached_.load(std::memory_order_acquire) != 0; }
  void wait() const noexcept;

 private:
  std::atomic<std::uint32_t> reached_{0};
};

class CpuEvent final : public Event {
 public:
  bool ready() const override;
  void wait() const override;

  // The last record; null when there was none.
  std::shared_ptr<CpuPoint> last() const;
  // Starts a new record. The stream that gets it reaches it, come what may.
  std::shared_ptr<CpuPoint> renew();

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<CpuPoint> last_;  // by mutex_
};

}  // namespace headrace
