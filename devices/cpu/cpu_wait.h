// Waiting on a CPU where the cores are few: a short spin, then sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "headrace/devices/base/clock.h"

namespace headrace {

// A sleeping thread takes 25-50 us to wake; a wait that is likely to be shorter spins this long first.
constexpr std::uint64_t kSpinNs = 20'000;

// True when `ready()` became true within the spin. Yields between looks, so others may run meanwhile.
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

// Blocks while `word` is `value`. Whoever changes it does so by a sequentially consistent operation and then
// notifies: the notification looks for sleepers, and must not look before the change is visible.
inline void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const auto changed = [&] { return word.load(std::memory_order_acquire) != value; };
  if (!spin_until(changed)) word.wait(value, std::memory_order_acquire);
}

}  // namespace headrace
