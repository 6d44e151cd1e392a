// Where a loader's compute runs. It is made of oneTBB tasks: by default in an arena of the loader's own, whose
// workers go back to the process whenever there is nothing to do.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Thread-safe. An embedding program may implement it, or hand over a oneTBB arena of its own by use_arena().
class ComputeArena {
 public:
  virtual ~ComputeArena() = default;
  // Runs the task some time, on a thread that may be kept busy for as long as there is work. Never runs it in the
  // calling thread.
  virtual void enqueue(std::function<void()> task) = 0;
  // Tasks that run at the same time at most.
  virtual int max_concurrency() const = 0;
};

// LoaderOptions::arena of `arena`, a tbb::task_arena, which must outlive the loader and what it may leave behind
// in user code. A template, so that no header here needs oneTBB's.
template <typename Arena>
std::shared_ptr<ComputeArena> use_arena(Arena& arena) {
  class Borrowed final : public ComputeArena {
   public:
    explicit Borrowed(Arena& arena) : arena_(arena) { arena_.initialize(); }
    void enqueue(std::function<void()> task) override { arena_.enqueue(std::move(task)); }
    int max_concurrency() const override { return arena_.max_concurrency(); }

   private:
    Arena& arena_;
  };
  return std::make_shared<Borrowed>(arena);
}

// Calls task(0) ... task(count - 1), each once and in any order, as oneTBB tasks in an arena of its own. On
// `threads` threads at the maximum, of which the calling one is the first; 0: one per processor. Returns when all
// have ended. Throws what one of them threw; others may then not have been called.
void run_tasks(int threads, std::size_t count, const std::function<void(std::size_t)>& task);

// What the arena of a loader's own is bound to, as oneTBB numbers them (tbb::info); -1: to nothing.
struct ArenaConstraints {
  int numa_node = -1;
  int core_type = -1;
};

}  // namespace headrace
