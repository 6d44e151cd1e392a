// A recorded list of one CPU stream's work. Private to the CPU backend.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "headrace/devices/base/first_error.h"
#include "headrace/devices/cpu/cpu_event.h"

namespace headrace {

// Behaves at each launch as if every step were submitted at that moment: events are resolved at the launch, on the
// host's side, and the steps then run as one item of the stream.
class CpuStepList {
 public:
  // `skipped` may be empty; it runs in place of `work` once earlier work has failed.
  void add(std::function<void()> work, std::function<void()> skipped);
  void add_record(CpuEvent& event);
  void add_wait(const CpuEvent& event);
  // Reaches the record that `event` has at the launch; does not begin one of its own.
  void add_reach(const CpuEvent& event);

  std::size_t size() const noexcept { return steps_.size(); }

  // What the events of this launch stand for, in the order of the steps.
  using Points = std::vector<std::shared_ptr<CpuPoint>>;
  Points resolve() const;

  // Runs the steps. Once the launch has failed the rest of the work is skipped, but events are still waited for
  // and reached: whoever waits for this stream goes on, and never before the work that the stream itself waited
  // for.
  void run(const Points& points, FirstError& failure) const noexcept;

 private:
  struct Step {  // one of: work, a record, a wait, a reach
    std::function<void()> work;
    std::function<void()> skipped;
    CpuEvent* recorded = nullptr;
    const CpuEvent* awaited = nullptr;
    const CpuEvent* reached = nullptr;

    void run(FirstError& failure) const noexcept;
    void pass_event(const std::shared_ptr<CpuPoint>& point) const noexcept;
  };

  std::vector<Step> steps_;
};

}  // namespace headrace
