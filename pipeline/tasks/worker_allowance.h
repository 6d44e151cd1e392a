// How many oneTBB workers the process may have while loaders run.
#pragma once

namespace headrace {

// An arena that only gets enqueued tasks is given the workers that oneTBB allows the process less one, for the
// thread that usually takes part: two lanes on two processors would run one after the other. So while any
// allowance lives, a tbb::global_control allows as many workers as there are processors, and at least what all
// allowances ask for together: lanes that are stuck in user code do not starve other loaders. oneTBB obeys the
// smallest control: one of the embedding program's stays in force.
class WorkerAllowance {
 public:
  // Error(kUnsupported) in a process forked off one that had an allowance: oneTBB's workers are not there.
  explicit WorkerAllowance(int workers);
  ~WorkerAllowance();
  WorkerAllowance(const WorkerAllowance&) = delete;
  WorkerAllowance& operator=(const WorkerAllowance&) = delete;

 private:
  int workers_;
};

}  // namespace headrace
