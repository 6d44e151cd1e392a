// What a CPU stream and those that follow it have recorded. Private to the CPU backend.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "headrace/devices/cpu/cpu_event.h"
#include "headrace/devices/cpu/cpu_step_list.h"
#include "headrace/devices/stream.h"

namespace headrace {

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
