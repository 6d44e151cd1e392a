// The number of oneTBB workers that the process may have while loaders run.
#pragma once

namespace headrace {

// oneTBB gives an arena that only receives enqueued tasks one worker less than the process is allowed, for the
// thread that usually takes part: two lanes on two processors would run one after the other. So while any
// allowance lives, a tbb::global_control allows as many workers as there are processors, and at least the sum of
// all allowances: lanes that are stuck in user code do not starve other loaders. oneTBB obeys the smallest
// control, so the embedding program's own control stays in force.
class WorkerAllowance {
 public:
  // Throws Error(kUnsupported) in a process forked from one that had an allowance: it lacks oneTBB's workers.
  explicit WorkerAllowance(int workers);
  ~WorkerAllowance();
  WorkerAllowance(const WorkerAllowance&) = delete;
  WorkerAllowance& operator=(const WorkerAllowance&) = delete;

 private:
  int workers_;
};

}  // namespace headrace
