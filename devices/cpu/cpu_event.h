// Events among CPU streams. Private to the CPU backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/event.h"

namespace headrace {

enum class CpuTiming { kNo, kYes };

// One record of an event: reached once, waited for by any number of threads. Lives as long as anyone holds it, so
// that a wait stays valid when the event is recorded again.
class CpuPoint {
 public:
  explicit CpuPoint(CpuTiming timing) : timing_(timing) {}

  void reach() noexcept;
  // Marks the record as reached by a stream whose work had failed.
  void reach_failed() noexcept;
  bool reached() const noexcept { return reached_.load(std::memory_order_acquire) != 0; }
  void wait() const noexcept;
  // REQUIRES: it was reached.
  bool failed() const noexcept { return failed_; }
  // Returns the time when it was reached; std::nullopt if it was not, or is not timed.
  std::optional<std::uint64_t> reached_ns() const noexcept;

 private:
  CpuTiming timing_;
  std::uint64_t reached_ns_ = 0;  // complete before `reached_`
  bool failed_ = false;           // so is this
  std::atomic<std::uint32_t> reached_{0};
};

class CpuEvent : public Event {
 public:
  explicit CpuEvent(CpuTiming timing) : timing_(timing) {}

  bool ready() const override;
  void wait() const override;
  std::optional<std::int64_t> ns_since(const Event& earlier) const override;

  // Returns the last record; null if there was none.
  std::shared_ptr<CpuPoint> last() const;
  // Starts a new record. The stream that gets it must reach it, whatever happens.
  std::shared_ptr<CpuPoint> renew();

 private:
  CpuTiming timing_;
  mutable std::mutex mutex_;
  std::shared_ptr<CpuPoint> last_;  // by mutex_
};

// A sleeping thread takes 25-50 us to wake; a wait that is likely to be shorter spins this long first.
constexpr std::uint64_t kSpinNs = 20'000;

// Returns whether ready() became true within the spin. Yields between checks, so that others may run meanwhile.
template <typename Ready>
bool spin_until(Ready ready) {
  if (ready()) return true;
  const std::uint64_t end = now_ns() + kSpinNs;
  do {
    std::this_thread::yield();
    if (ready()) return true;
  } while (now_ns() < end);
  return false;
}

// Blocks while `word` is `value`. REQUIRES: changes are sequentially consistent and then notified: the
// notification looks for sleepers, and must not look before the change is visible.
inline void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const auto changed = [&] { return word.load(std::memory_order_acquire) != value; };
  if (!spin_until(changed)) word.wait(value, std::memory_order_acquire);
}

}  // namespace headrace
