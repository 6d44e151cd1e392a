#include "headrace/pipeline/tasks/worker_allowance.h"

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/compute_arena.h"

namespace headrace {
namespace {

// The control of this process.
class AllowedWorkers {
 public:
  void add(int workers) {
    const std::lock_guard lock(mutex_);
    if (process_ == 0) {
      process_ = getpid();
      std::atexit(end_process);
    }
    if (process_ != getpid()) {
      throw Error(ErrorCode::kUnsupported,
                  "a loader was started in this process's parent before fork(): oneTBB's workers are not here",
                  "fork before the first loader is made, or start the process again (spawn, exec)");
    }
    workers_ += workers;
    apply();
  }
  void remove(int workers) {
    const std::lock_guard lock(mutex_);
    workers_ -= workers;
    apply();
  }

 private:
  // Releases the control at exit: after oneTBB's own objects are destroyed, releasing it would abort the process.
  static void end_process();

  void apply() {
    if (process_ends_) return;
    if (workers_ == 0) return control_.reset();
    const auto allowed = static_cast<std::size_t>(std::max(tbb::info::default_concurrency(), workers_)) + 1;
    // The new one first: in between the smaller of the two is in force, not oneTBB's default.
    auto next = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, allowed);
    control_ = std::move(next);
  }

  std::mutex mutex_;
  pid_t process_ = 0;  // 0: no allowance yet
  bool process_ends_ = false;
  int workers_ = 0;
  std::unique_ptr<tbb::global_control> control_;
};

// Never destroyed: a lane that comes back from user code while the process ends still gives its allowance back.
AllowedWorkers& allowed_workers() {
  static auto* const workers = new AllowedWorkers;
  return *workers;
}

void AllowedWorkers::end_process() {
  AllowedWorkers& workers = allowed_workers();
  const std::lock_guard lock(workers.mutex_);
  workers.control_.reset();
  workers.process_ends_ = true;
}

}  // namespace

WorkerAllowance::WorkerAllowance(int workers) : workers_(workers) { allowed_workers().add(workers); }

WorkerAllowance::~WorkerAllowance() { allowed_workers().remove(workers_); }

void run_tasks(int threads, std::size_t count, const std::function<void(std::size_t)>& task) {
  const int wanted = threads > 0 ? threads : tbb::info::default_concurrency();
  const WorkerAllowance allowance(wanted - 1);
  tbb::task_arena arena(wanted);
  arena.execute([&] { tbb::parallel_for(std::size_t{0}, count, task, tbb::simple_partitioner()); });
}

}  // namespace headrace
