#include "headrace/pipeline/engine/own_arena.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <vector>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

void check_known(const char* what, int id, std::vector<int> known) {
  std::erase_if(known, [](int each) { return each < 0; });  // oneTBB's "not known"
  if (id < 0 || std::ranges::find(known, id) != known.end()) return;
  throw ConfigError(fmt::format("there is no {} {}", what, id),
                    known.empty()
                        ? fmt::format("oneTBB knows no {}s of this machine: it needs tbbbind and hwloc", what)
                        : fmt::format("this machine has {}", fmt::join(known, ", ")));
}

class OwnArena final : public ComputeArena {
 public:
  explicit OwnArena(const tbb::task_arena::constraints& constraints) : arena_(constraints, 0) {
    arena_.initialize();
  }

  void enqueue(std::function<void()> task) override { arena_.enqueue(std::move(task)); }
  int max_concurrency() const override { return arena_.max_concurrency(); }

 private:
  tbb::task_arena arena_;
};

}  // namespace

std::shared_ptr<ComputeArena> make_own_arena(int max_concurrency, const ArenaConstraints& constraints) {
  if (constraints.numa_node >= 0) check_known("NUMA node", constraints.numa_node, tbb::info::numa_nodes());
  if (constraints.core_type >= 0) check_known("core type", constraints.core_type, tbb::info::core_types());
  tbb::task_arena::constraints wanted;
  wanted.set_max_concurrency(max_concurrency);
  if (constraints.numa_node >= 0) wanted.set_numa_id(constraints.numa_node);
  if (constraints.core_type >= 0) wanted.set_core_type(constraints.core_type);
  return std::make_shared<OwnArena>(wanted);
}

}  // namespace headrace
