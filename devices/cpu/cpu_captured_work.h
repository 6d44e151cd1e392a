// What a CPU stream and those that follow it have recorded. Private to the CPU backend.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "headrace/devices/base/first_error.h"
#include "headrace/devices/cpu/cpu_event.h"
#include "headrace/devices/stream.h"

namespace headrace {

// A recorded list of one stream's work. Behaves at each launch as if every step were submitted at that moment:
// events are resolved at the launch, on the host's side, and the steps then run as one item of the stream.
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

class CpuStream;

class CpuCapturedWork final : public CapturedWork {
 public:
  // The steps of one stream. `stream` is null for the one that captures: its steps run on the stream they are
  // launched on.
  struct Branch {
    CpuStream* stream = nullptr;
    CpuStepList steps = {};
    std::size_t followed = 0;  // so many steps are waited for by another branch
  };

  CpuCapturedWork() { branches_.emplace_back(); }

  // Stays where it is as long as the work lives.
  Branch& origin() noexcept { return branches_.front(); }
  Branch& add_branch(CpuStream& stream) { return branches_.emplace_back(Branch{.stream = &stream}); }
  // From here on `follower` waits for what `leader` holds so far.
  void follow(Branch& leader, Branch& follower);
  const std::deque<Branch>& branches() const noexcept { return branches_; }
  // Whether the end of the capturing stream's steps is the end of all.
  bool joined() const noexcept;

  // One launch: for each branch, in order, what its events stand for.
  std::vector<CpuStepList::Points> resolve();

 private:
  std::deque<Branch> branches_;
  std::deque<CpuEvent> forks_;  // between branches, renewed at each launch
};

}  // namespace headrace
