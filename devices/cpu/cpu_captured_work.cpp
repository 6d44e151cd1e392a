#include "headrace/devices/cpu/cpu_captured_work.h"

#include <exception>

namespace headrace {
// A record is reached and an event waited for even when the work around it is skipped: whoever waits for this
// stream goes on, and never before the work that the stream itself waited for.
void CpuCapturedWork::Step::pass_event(const std::shared_ptr<CpuPoint>& point) const noexcept {
  if (recorded != nullptr) {
    point->reach();
  } else if (point != nullptr) {
    point->wait();
  }
}

void CpuCapturedWork::add(std::function<void()> work, std::function<void()> skipped) {
  steps_.emplace_back();
  steps_.back().work = std::move(work);
  steps_.back().skipped = std::move(skipped);
}

void CpuCapturedWork::add_record(CpuEvent& event) {
  steps_.emplace_back();
  steps_.back().recorded = &event;
}

void CpuCapturedWork::add_wait(const CpuEvent& event) {
  steps_.emplace_back();
  steps_.back().awaited = &event;
}

CpuCapturedWork::Points CpuCapturedWork::resolve() const {
  Points points;
  for (const Step& step : steps_) {
    if (step.recorded != nullptr) points.push_back(step.recorded->renew());
    if (step.awaited != nullptr) points.push_back(step.awaited->last());
  }
  return points;
}

void CpuCapturedWork::run(const Points& points) const {
  std::exception_ptr error;
  auto point = points.begin();
  for (const Step& step : steps_) {
    if (!step.work) {
      step.pass_event(*point++);
      continue;
    }
    try {
      if (!error) {
        step.work();
      } else if (step.skipped) {
        step.skipped();
      }
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

void CpuCapturedWork::skip(const Points& points) const noexcept {
  auto point = points.begin();
  for (const Step& step : steps_) {
    if (!step.work) {
      step.pass_event(*point++);
    } else if (step.skipped) {
      step.skipped();
    }
  }
}

}  // namespace headrace
