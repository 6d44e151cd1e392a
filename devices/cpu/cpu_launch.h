// One launch of captured work. Private to the CPU backend.
#pragma once

#include <vector>

#include "headrace/devices/cpu/cpu_captured_work.h"

namespace headrace {

// Made on the host's side; each branch then runs once, on its own stream. Thread-safe over branches.
class CpuLaunch {
 public:
  explicit CpuLaunch(CpuCapturedWork& work) : work_(work), points_(work.resolve()) {}

  // The launching stream's branch; throws the launch's first error when all branches are done.
  void run_origin() {
    run(0);
    failure_.raise();
  }
  // The same on a stream that has failed before: only what must happen even then.
  void skip_origin() noexcept {
    failure_.note(nullptr);
    run(0);
  }
  void run(std::size_t branch) noexcept { work_.branches()[branch].steps.run(points_[branch], failure_); }

 private:
  const CpuCapturedWork& work_;
  std::vector<CpuStepList::Points> points_;  // by branch
  FirstError failure_;
};

}  // namespace headrace
