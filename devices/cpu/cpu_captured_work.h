// Recorded work of a CPU stream and its followers. Private to the CPU backend.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "headrace/devices/base/failures.h"
#include "headrace/devices/cpu/cpu_event.h"
#include "headrace/devices/stream.h"

namespace headrace {

// A recorded list of one stream's work. Each launch behaves as if every step were submitted at that moment: the
// host resolves the events at the launch, and the steps then run as one item of the stream.
class CpuStepList {
 public:
  // `skipped` may be empty; it runs in place of `work` once earlier work has failed.
  void add(std::function<void()> work, std::function<void()> skipped);
  void add_record(CpuEvent& event);
  void add_wait(const CpuEvent& event);
  // Reaches the record that `event` has at the launch, without starting a new record.
  void add_reach(const CpuEvent& event);

  std::size_t size() const noexcept { return steps_.size(); }

  // The records of this launch's events, in the order of the steps.
  using Points = std::vector<std::shared_ptr<CpuPoint>>;
  Points resolve() const;

  // Runs the steps. Once the launch has failed, the remaining work is skipped, but events are still waited for and
  // reached: waiters of this stream go on, and never before the work that the stream itself waited for.
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

class CpuStream;

class CpuCapturedWork final : public CapturedWork {
 public:
  // The steps of one stream. `stream` is null for the capturing one: its steps run on the launching stream.
  struct Branch {
    CpuStream* stream = nullptr;
    CpuStepList steps = {};
    std::size_t followed = 0;  // number of steps for which another branch waits
  };

  CpuCapturedWork() { branches_.emplace_back(); }

  // Returns the capturing stream's branch; its address never changes.
  Branch& origin() noexcept { return branches_.front(); }
  Branch& add_branch(CpuStream& stream) { return branches_.emplace_back(Branch{.stream = &stream}); }
  // Makes later steps of `follower` wait for the steps that `leader` holds so far.
  void follow(Branch& leader, Branch& follower);
  const std::deque<Branch>& branches() const noexcept { return branches_; }
  // Returns whether all branches end before the end of the capturing stream's steps.
  bool joined() const noexcept;

  // Begins one launch: returns the records of each branch's events, in order.
  std::vector<CpuStepList::Points> resolve();

 private:
  std::deque<Branch> branches_;
  std::deque<CpuEvent> forks_;  // between branches, renewed at each launch
};

}  // namespace headrace
