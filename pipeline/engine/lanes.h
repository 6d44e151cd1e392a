// Compute as oneTBB runs it: tasks that take one piece of work after another and end when there is none.
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

// For so many tasks at a time. ConfigError where the machine does not have what the constraints name.
std::shared_ptr<ComputeArena> make_own_arena(int max_concurrency, const ArenaConstraints& constraints);

// What a running lane has for itself. There are as many as may run at once; one task at a time sits in each.
struct alignas(64) Lane {
  Lane(std::size_t stages, MemoryBudget& budget) : state(stages) { scratch.charged = ChargedBytes(budget); }

  ThreadState state;
  Scratch scratch;
  std::atomic<std::uint64_t> idle_since{0};  // 0: at work, or not allowed to be
};

// What lanes do.
class LaneBody {
 public:
  virtual ~LaneBody() = default;
  // Does the next piece of work; false where there is none. Throws Abandoned alone.
  virtual bool run_next(Lane& lane) = 0;
  // Whether run_next() would find something.
  virtual bool has_work() const noexcept = 0;
};

// The tasks of lanes, counted. Outlives the lanes: a task looks here first whether they are still there.
class LaneGate {
 public:
  // False once it is closed: then nothing but the gate may be touched.
  bool enter();
  void leave();

  void close();
  // After close(): waits until `max_inside` tasks are inside at most; those that are then keep `owner` alive until
  // they leave.
  void wait_and_keep(int max_inside, std::shared_ptr<void> owner);

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  // By mutex_.
  bool closed_ = false;
  int inside_ = 0;
  std::shared_ptr<void> kept_;
};

// Thread-safe. `body` is asked until it has nothing left; whoever gives it work calls wake() afterwards. Waits and
// deadlines go by `clock`.
class Lanes {
 public:
  // `stages` that each lane counts.
  Lanes(std::shared_ptr<ComputeArena> arena, int max_lanes, std::size_t stages, LaneBody& body,
        MemoryBudget& budget, const Clock& clock);

  // A ring a lane, named by their numbers. Before the first wake().
  void set_trace(Trace& trace);

  // There is work for so many lanes: starts them, as far as they do not run and are allowed.
  void wake(std::int64_t wanted);
  // So many may run at once. Those beyond end after their piece of work.
  void allow(int lanes);
  int allowed() const noexcept { return allowed_.load(std::memory_order_relaxed); }

  // No lane starts any more.
  void stop() noexcept;
  // After stop(): returns when no task touches this or the body any more. Those in user code at the `deadline` are
  // left there and keep `owner`, which holds both, alive until they come back.
  void end(std::uint64_t deadline, std::shared_ptr<void> owner);

  const std::vector<std::unique_ptr<Lane>>& lanes() const noexcept { return lanes_; }
  // What allowed lanes had nothing to do until `now`, together.
  std::uint64_t waited_ns(std::uint64_t now) const noexcept;

 private:
  // A task, between enter() and leave().
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
