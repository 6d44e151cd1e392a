// Sets how OpenMP threads wait: spinning while the machine is otherwise idle, else asleep. Private to the CPU
// backend.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace headrace {

// Makes waiting OpenMP threads sleep almost at once. libgomp's threads spin for milliseconds before they sleep;
// but if a process has more OpenMP threads than processors, they spin only 100 times, some microseconds (libgomp's
// manual, GOMP_SPINCOUNT). So this object holds as many additional threads as there are processors, asleep.
class OpenMpOversubscription {
 public:
  OpenMpOversubscription() : host_([this] { stand_by(); }) {}
  ~OpenMpOversubscription();
  OpenMpOversubscription(const OpenMpOversubscription&) = delete;
  OpenMpOversubscription& operator=(const OpenMpOversubscription&) = delete;

 private:
  void stand_by();

  std::atomic<int> present_{0};
  std::atomic<bool> dismissed_{false};
  std::thread host_;
};

// Decides whether waiting threads should sleep: yes after two measurements in a row with other load, no after four
// without.
class SleepDecision {
 public:
  static constexpr double kOtherLoad = 0.25;  // processors

  // Adds a measurement of the processors that others use, and returns the decision.
  bool update(double other_processors) noexcept;

 private:
  int opposed_ = 0;  // measurements in a row against the current decision
  bool sleeps_ = false;
};

// On an otherwise idle machine a process trains fastest when waiting threads spin: a small network's step has
// loops of ten microseconds. Beside other load, spinning uses up a thread's time slice, and the thread that still
// has work waits for a processor: a step of half a millisecond took up to twenty. libgomp reads OMP_WAIT_POLICY
// and GOMP_SPINCOUNT when it is loaded, too early for a library to set them. So while this lives, a thread
// measures the load of other processes four times a second and holds an OpenMpOversubscription as long as there is
// any. The thread exists from begin() on: a device used only for its memory has no waiting OpenMP threads.
class OpenMpWaiting {
 public:
  // Returns null if the environment already says how OpenMP threads wait.
  static std::shared_ptr<OpenMpWaiting> create();

  OpenMpWaiting() = default;
  ~OpenMpWaiting();
  OpenMpWaiting(const OpenMpWaiting&) = delete;
  OpenMpWaiting& operator=(const OpenMpWaiting&) = delete;

  // Starts the thread; later calls do nothing. Thread-safe. If no thread can be started, OpenMP waits as usual.
  // REQUIRES: called before the first mathematics.
  void begin() noexcept;

  // Returns whether the thread was started. REQUIRES: no other thread is in begin().
  bool is_watching() const noexcept { return watcher_.joinable(); }

 private:
  void watch();

  std::once_flag begun_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread watcher_;
};

}  // namespace headrace
