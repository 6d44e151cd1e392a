#include "headrace/devices/cpu/cpu_captured_work.h"

#include <algorithm>

namespace headrace {

void CpuCapturedWork::follow(Branch& leader, Branch& follower) {
  const CpuEvent& fork = forks_.emplace_back(CpuTiming::kNo);
  leader.steps.add_reach(fork);
  follower.steps.add_wait(fork);
  leader.followed = leader.steps.size();
}

bool CpuCapturedWork::joined() const noexcept {
  return std::all_of(branches_.begin() + 1, branches_.end(),
                     [](const Branch& branch) { return branch.followed == branch.steps.size(); });
}

std::vector<CpuStepList::Points> CpuCapturedWork::resolve() {
  for (CpuEvent& fork : forks_) fork.renew();
  std::vector<CpuStepList::Points> points;
  for (const Branch& branch : branches_) points.push_back(branch.steps.resolve());
  return points;
}

}  // namespace headrace
