// The current step of a thread or task, so that it can be watched, and abandoned in user code.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/trace.h"
#include "headrace/pipeline/operations/machinery/stage_clock.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// Thrown in a thread that returned from user code after it was abandoned. The thread must end, touching only what
// it owns.
struct Abandoned {};

// A thread's current step, written by itself and read by others. Only the thread writes its counters.
class alignas(64) ThreadState final : public Probe {
 public:
  explicit ThreadState(std::size_t stage_count = 0) : stages(stage_count) {}

  void begin(const std::string& step, std::uint64_t record) noexcept override;
  void enter_user_code() noexcept override;
  void leave_user_code() override;
  // Marks the thread as at work until finish(): end() waits for it.
  void start() noexcept { mode_.store(Mode::kOurs); }
  void finish();
  // Returns true when it is no longer at work; false if it was abandoned in user code at the `deadline`: its
  // return from there then throws Abandoned.
  bool end(const Clock& clock, std::uint64_t deadline);
  // Marks the thread as doing nothing that could take long.
  void idle() noexcept { step_.store(nullptr, std::memory_order_release); }

  // Returns "<step> on record <n>" and since when; empty while idle.
  std::string doing() const;
  std::uint64_t since_ns() const noexcept { return since_.load(std::memory_order_relaxed); }

  // The uses of the thread's time. Written by itself, read by others.
  StageClock reading;                     // Source::read
  std::vector<StageClock> stages;         // for a compute thread: the program's stages, then the mixers'
  WaitClock waits;                        // for its next piece of work
  std::atomic<std::uint64_t> retries{0};  // of reads that the system refused
  TraceRing* trace = nullptr;             // null: no tracing; set before the thread starts

 private:
  enum class Mode { kOurs, kUserCode, kAbandoned, kDone };

  void let_go() noexcept;

  std::shared_ptr<void> kept_;  // see kept_by_user_code()
  std::atomic<Mode> mode_{Mode::kDone};
  std::atomic<const std::string*> step_{nullptr};
  std::atomic<std::uint64_t> record_{0};
  std::atomic<std::uint64_t> since_{0};
  std::mutex mutex_;
  std::condition_variable done_;
};

}  // namespace headrace
