// How OpenMP threads wait: spinning while the machine is ours, asleep while others use it too. Private to the CPU
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
// but where a process has more OpenMP threads than processors they spin only 100 times, some microseconds
// (libgomp's manual, GOMP_SPINCOUNT). While one of these lives, the process has: it holds as many more threads
// as there are processors, asleep.
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

// Whether waiting threads should sleep. Two measurements in a row of other load decide for it, four without
// against.
class SleepDecision {
 public:
  static constexpr double kOtherLoad = 0.25;  // processors

  // After one more measurement: what others use, in processors.
  bool update(double other_processors) noexcept;

 private:
  int opposed_ = 0;  // measurements in a row that speak against what holds now
  bool sleeps_ = false;
};

// On a machine of its own a process trains fastest when waiting threads spin: a small network's step has loops of
// ten microseconds. Beside other load spinning uses up a thread's time slice, and the thread that still has work
// waits for a processor: a step of half a millisecond took up to twenty. libgomp reads OMP_WAIT_POLICY and
// GOMP_SPINCOUNT when it is loaded, too early for a library to set them. So while this lives, a thread measures
// the load of other processes four times a second and holds an OpenMpOversubscription as long as there is any. The
// thread exists from begin() on: whoever uses a device for its memory alone has no OpenMP threads that wait.
class OpenMpWaiting {
 public:
  // Null where the environment already says how OpenMP threads wait.
  static std::shared_ptr<OpenMpWaiting> create();

  OpenMpWaiting() = default;
  ~OpenMpWaiting();
  OpenMpWaiting(const OpenMpWaiting&) = delete;
  OpenMpWaiting& operator=(const OpenMpWaiting&) = delete;

  // Before the first mathematics; the calls after the first do nothing. Any thread. Where no thread can be had,
  // OpenMP waits as it would without this.
  void begin() noexcept;

  // Whether the thread was started. Not while another thread may be in begin().
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
