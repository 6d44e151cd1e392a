// The arena that runs a loader's compute. Compute consists of oneTBB tasks: by default in the loader's own arena,
// whose workers return to the process when there is nothing to do.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/option_visitor.h"

namespace HEADRACE_API headrace {

// Thread-safe. An embedding program may implement it, or pass its own oneTBB arena with use_arena().
class ComputeArena {
 public:
  virtual ~ComputeArena() = default;
  // Runs the task later, on a thread that may be kept busy as long as there is work. Never runs it in the calling
  // thread.
  virtual void enqueue(std::function<void()> task) = 0;
  // Returns the maximum number of tasks that run at the same time.
  virtual int max_concurrency() const = 0;
};

// Returns a LoaderOptions::arena for `arena`, a tbb::task_arena, which must outlive the loader and any user code
// the loader may leave running. A template, so that no header here needs oneTBB's.
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

// Calls task(0) ... task(count - 1), each once and in any order, as oneTBB tasks in its own arena. Uses at most
// `threads` threads including the calling one; 0: one per processor. Returns when all have ended. Throws what one
// of them threw; others may then not have been called.
void run_tasks(int threads, std::size_t count, const std::function<void(std::size_t)>& task);

// Binding of a loader's own arena, as numbered by oneTBB (tbb::info).
struct ArenaConstraints {
  int numa_node = -1;
  int core_type = -1;
  void each_field(OptionVisitor& visit) {
    visit("numa_node", numa_node, "The NUMA node of the compute threads; -1: any.");
    visit("core_type", core_type, "The type of core of the compute threads; -1: any.");
  }
};

}  // namespace headrace
