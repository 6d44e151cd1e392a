// A oneTBB arena of the embedding program's as the place where a loader's compute runs. The only public header
// that needs oneTBB's own.
#pragma once

#include <tbb/task_arena.h>

#include <memory>

#include "headrace/pipeline/compute_arena.h"

namespace headrace {

// LoaderOptions::arena of `arena`, which must outlive the loader and what it may leave behind in user code.
inline std::shared_ptr<ComputeArena> use_arena(tbb::task_arena& arena) {
  class Borrowed final : public ComputeArena {
   public:
    explicit Borrowed(tbb::task_arena& arena) : arena_(arena) { arena_.initialize(); }
    void enqueue(std::function<void()> task) override { arena_.enqueue(std::move(task)); }
    int max_concurrency() const override { return arena_.max_concurrency(); }

   private:
    tbb::task_arena& arena_;
  };
  return std::make_shared<Borrowed>(arena);
}

}  // namespace headrace
