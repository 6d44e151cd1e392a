// Computation in oneTBB: tasks that take one piece of work after another and end when there is none.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "headrace/devices/base/trace.h"
#include "headrace/pipeline/compute_arena.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"
#include "headrace/pipeline/tasks/thread_state.h"

namespace headrace {

// Returns an arena for `max_concurrency` tasks at a time. Throws ConfigError if the machine lacks what the
// constraints name.
std::shared_ptr<ComputeArena> make_own_arena(int max_concurrency, const ArenaConstraints& constraints);

// The private state of a running lane. There are as many as may run at once; each has one task at a time.
struct alignas(64) Lane {
  Lane(std::size_t stages, MemoryBudget& budget) : state(stages) { scratch.charged = ChargedBytes(budget); }

  ThreadState state;
  Scratch scratch;
  std::atomic<std::uint64_t> idle_since{0};  // 0: at work, or not allowed to be
};

// The work of lanes.
class LaneBody {
 public:
  virtual ~LaneBody() = default;
  // Does the next piece of work; returns false if there is none. Throws only Abandoned.
  virtual bool run_next(Lane& lane) = 0;
  // Returns whether run_next() would find work.
  virtual bool has_work() const noexcept = 0;
};

// Counts the tasks of lanes. Outlives the lanes: a task first checks here whether they still exist.
class LaneGate {
 public:
  // Returns false once the gate is closed: then nothing but the gate may be touched.
  bool enter();
  void leave();

  void close();
  // Waits until at most `max_inside` tasks are inside, which then keep `owner` alive until they leave.
  // REQUIRES: after close().
  void wait_and_keep(int max_inside, std::shared_ptr<void> owner);

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  // By mutex_.
  bool closed_ = false;
  int inside_ = 0;
  std::shared_ptr<void> kept_;
};

// Runs `body` until it has no work left; callers who give it work call wake() afterwards. Waits and deadlines use
// `clock`. Thread-safe.
class Lanes {
 public:
  // `stages`: number of stages that each lane counts.
  Lanes(std::shared_ptr<ComputeArena> arena, int max_lanes, std::size_t stages, LaneBody& body,
        MemoryBudget& budget, const Clock& clock);

  // Gives each lane a trace ring named by its number. REQUIRES: before the first wake().
  void set_trace(Trace& trace);

  // Announces work for `wanted` lanes: starts them if they are not running and are allowed.
  void wake(std::int64_t wanted);
  // Runs a lane in the calling thread until there is no work; returns false if as many run as are allowed.
  // REQUIRES: the work has no user code, and the caller returns before end().
  bool run_here();
  // Limits how many may run at once. Excess lanes end after their piece of work.
  void allow(int lanes);
  int allowed() const noexcept { return allowed_.load(std::memory_order_relaxed); }

  // Prevents further lanes from starting.
  void stop() noexcept;
  // Returns when no task touches this or the body any more. Tasks in user code at the `deadline` are left there
  // and keep `owner`, which holds both, alive until they return. REQUIRES: after stop().
  void end(std::uint64_t deadline, std::shared_ptr<void> owner);

  const std::vector<std::unique_ptr<Lane>>& lanes() const noexcept { return lanes_; }
  // Returns the total time until `now` in which allowed lanes had nothing to do.
  std::uint64_t waited_ns(std::uint64_t now) const noexcept;

 private:
  // Runs a task, between enter() and leave().
  void run();
  void run_in(Lane& lane);
  Lane* take_seat();
  void leave_seat(Lane& lane);

  std::shared_ptr<ComputeArena> arena_;
  LaneBody& body_;
  const Clock& clock_;
  std::shared_ptr<LaneGate> gate_ = std::make_shared<LaneGate>();
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<int> running_{0};  // enqueued or running
  std::atomic<int> allowed_{0};
  std::mutex mutex_;
  std::vector<Lane*> seats_;          // by mutex_: free ones, the first lane last
  std::atomic<bool> stopped_{false};  // set by mutex_
};

}  // namespace headrace
