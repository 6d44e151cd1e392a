// Where a loader's compute runs. It is made of oneTBB tasks: by default in an arena of the loader's own, whose
// workers go back to the process whenever there is nothing to do.
#pragma once

#include <cstddef>
#include <functional>

namespace headrace {

// Thread-safe. An embedding program may implement it, or hand over an arena of its own by tbb_arena.h.
class ComputeArena {
 public:
  virtual ~ComputeArena() = default;
  // Runs the task some time, on a thread that may be kept busy for as long as there is work. Never runs it in the
  // calling thread.
  virtual void enqueue(std::function<void()> task) = 0;
  // Tasks that run at the same time at most.
  virtual int max_concurrency() const = 0;
};

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
