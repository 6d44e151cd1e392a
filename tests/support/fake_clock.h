// A clock that stands still until the test moves it.
#pragma once

#include "headrace/devices/base/clock.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

class FakeClock final : public Clock {
 public:
  std::uint64_t now() const noexcept override { return now_.load(); }

  bool wait(std::condition_variable& woken, std::unique_lock<std::mutex>& lock,
            std::uint64_t deadline) const override {
    const std::uint64_t number = begin(woken, *lock.mutex());
    if (now() < deadline) woken.wait(lock);  // who moves the clock needs `lock` before it wakes this thread
    end(number);
    return now() < deadline;
  }

  // Does not sleep but moves the clock there: the time is what shows that somebody would have slept.
  void sleep_until(std::uint64_t deadline) const override { move_to(deadline); }

  // Wakes everybody who waits. What they wait on outlives this call.
  void advance(std::chrono::nanoseconds by) { move_to(now() + static_cast<std::uint64_t>(by.count())); }

  // Until so many threads wait, whatever for and until when. One that advance() woke counts when it waits again.
  void await_waiting(std::size_t threads) const {
    std::unique_lock lock(mutex_);
    begun_.wait(lock, [&] { return waits_.size() >= threads; });
  }

 private:
  struct Wait {
    std::uint64_t number = 0;
    std::condition_variable* woken = nullptr;
    std::mutex* mutex = nullptr;
  };

  // Returns the wait's number.
  std::uint64_t begin(std::condition_variable& woken, std::mutex& mutex) const {
    const std::lock_guard lock(mutex_);
    waits_.push_back({.number = ++begun_waits_, .woken = &woken, .mutex = &mutex});
    begun_.notify_all();
    return begun_waits_;
  }
  void end(std::uint64_t number) const {
    const std::lock_guard lock(mutex_);
    std::erase_if(waits_, [&](const Wait& wait) { return wait.number == number; });
  }

  void move_to(std::uint64_t time) const {
    std::vector<Wait> waits;
    {
      const std::lock_guard lock(mutex_);
      now_ = std::max(now_.load(), time);
      waits.swap(waits_);
    }
    for (const Wait& wait : waits) {
      { const std::lock_guard lock(*wait.mutex); }
      wait.woken->notify_all();
    }
  }

  mutable std::atomic<std::uint64_t> now_{1};  // set by mutex_
  mutable std::mutex mutex_;
  mutable std::condition_variable begun_;
  // By mutex_.
  mutable std::vector<Wait> waits_;  // but those that were woken
  mutable std::uint64_t begun_waits_ = 0;
};

}  // namespace headrace::test
