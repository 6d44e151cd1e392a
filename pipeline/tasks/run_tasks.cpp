#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "headrace/pipeline/compute_arena.h"
#include "headrace/pipeline/tasks/worker_allowance.h"

namespace headrace {

void run_tasks(int threads, std::size_t count, const std::function<void(std::size_t)>& task) {
  const int wanted = threads > 0 ? threads : tbb::info::default_concurrency();
  const WorkerAllowance allowance(wanted - 1);
  tbb::task_arena arena(wanted);
  arena.execute([&] { tbb::parallel_for(std::size_t{0}, count, task, tbb::simple_partitioner()); });
}

}  // namespace headrace
