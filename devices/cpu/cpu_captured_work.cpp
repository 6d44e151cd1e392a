#include "headrace/devices/cpu/cpu_captured_work.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace headrace {

void CpuStepList::Step::run(FirstError& failure) const noexcept {
  try {
    if (!failure.any()) {
      work();
    } else if (skipped) {
      skipped();
    }
  } catch (...) {
    failure.note(std::current_exception());
  }
}

void CpuStepList::Step::pass_event(const std::shared_ptr<CpuPoint>& point) const noexcept {
  if (point == nullptr) return;
  if (awaited != nullptr) {
    point->wait();
  } else {
    point->reach();
  }
}

void CpuStepList::add(std::function<void()> work, std::function<void()> skipped) {
  steps_.emplace_back();
  steps_.back().work = std::move(work);
  steps_.back().skipped = std::move(skipped);
}

void CpuStepList::add_record(CpuEvent& event) {
  steps_.emplace_back();
  steps_.back().recorded = &event;
}

void CpuStepList::add_wait(const CpuEvent& event) {
  steps_.emplace_back();
  steps_.back().awaited = &event;
}

void CpuStepList::add_reach(const CpuEvent& event) {
  steps_.emplace_back();
  steps_.back().reached = &event;
}

CpuStepList::Points CpuStepList::resolve() const {
  Points points;
  for (const Step& step : steps_) {
    if (step.recorded != nullptr) points.push_back(step.recorded->renew());
    if (step.awaited != nullptr) points.push_back(step.awaited->last());
    if (step.reached != nullptr) points.push_back(step.reached->last());
  }
  return points;
}

void CpuStepList::run(const Points& points, FirstError& failure) const noexcept {
  auto point = points.begin();
  for (const Step& step : steps_) {
    if (step.work) {
      step.run(failure);
    } else {
      step.pass_event(*point++);
    }
  }
}

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
