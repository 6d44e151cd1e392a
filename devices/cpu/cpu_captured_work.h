// A recorded list of a CPU stream's work. Private to the CPU backend.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/devices/captured_work.h"
#include "headrace/devices/cpu/cpu_event.h"

namespace headrace {

// One launch behaves as if every step were submitted at that moment: events are resolved at the launch, on
// the host's side, and the steps then run as one item of the stream.
class CpuCapturedWork final : public CapturedWork {
 public:
  // `skipped` may be empty; it runs in place of `work` once earlier work has failed.
  void add(std::function<void()> work, std::function<void()> skipped);
  void add_record(CpuEvent& event);
  void add_wait(const CpuEvent& event);

  // What the events of this launch stand for, in the order of the steps.
  using Points = std::vector<std::shared_ptr<CpuPoint>>;
  Points resolve() const;

  // Runs the steps. After an exception the rest of the work is skipped, but events are still waited for and
  // reached; then the exception is thrown.
  void run(const Points& points) const;
  // For a stream that has failed before: only what must happen even then.
  void skip(const Points& points) const noexcept;

 private:
  struct Step {  // one of: work, a record, a wait
    std::function<void()> work;
    std::function<void()> skipped;
    CpuEvent* recorded = nullptr;
    const CpuEvent* awaited = nullptr;

    void pass_event(const std::shared_ptr<CpuPoint>& point) const noexcept;
  };

  std::vector<Step> steps_;
};

}  // namespace headrace
