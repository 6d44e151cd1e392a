// What a thread or task is at, so that it can be watched, and given up inside user code.
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

// Thrown in a thread that came back from user code after it had been given up. It must end without
// touching anything but what it owns.
struct Abandoned {};

// What a thread is at, told by itself and read by others. Counters are written by their thread only.
class alignas(64) ThreadState final : public Probe {
 public:
  // With so many `stages`.
  explicit ThreadState(std::size_t stage_count = 0) : stages(stage_count) {}

  void begin(const std::string& step, std::uint64_t record) noexcept override;
  void enter_user_code() noexcept override { mode_.store(Mode::kUserCode); }
  void leave_user_code() override;
  // At work from now on, until finish(): end() waits for it.
  void start() noexcept { mode_.store(Mode::kOurs); }
  void finish();
  // True when it is not at work any more; false when it was given up within user code at the `deadline`: what
  // comes back from there throws Abandoned.
  bool end(const Clock& clock, std::uint64_t deadline);
  // Nothing that could take long.
  void idle() noexcept { step_.store(nullptr, std::memory_order_release); }

  // "<step> on record <n>" and since when; empty while idle.
  std::string doing() const;
  std::uint64_t since_ns() const noexcept { return since_.load(std::memory_order_relaxed); }

  // What the thread's time went into. Written by itself, read by others.
  StageClock reading;                     // Source::read
  std::vector<StageClock> stages;         // of a compute thread: the program's, then the mixers'
  WaitClock waits;                        // for its next piece of work
  std::atomic<std::uint64_t> retries{0};  // of reads that the system refused
  TraceRing* trace = nullptr;             // null: nothing is traced; set before the thread starts

 private:
  enum class Mode { kOurs, kUserCode, kAbandoned, kDone };

  std::atomic<Mode> mode_{Mode::kDone};
  std::atomic<const std::string*> step_{nullptr};
  std::atomic<std::uint64_t> record_{0};
  std::atomic<std::uint64_t> since_{0};
  std::mutex mutex_;
  std::condition_variable done_;
};

}  // namespace headrace
