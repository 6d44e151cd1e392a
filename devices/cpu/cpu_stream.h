// The CPU's streams and the work that they capture. Private to the CPU backend.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "headrace/devices/base/failures.h"
#include "headrace/devices/cpu/cpu_event.h"
#include "headrace/devices/stream.h"

namespace headrace {

// Recorded work of a CPU stream and its followers.

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

// A CPU stream: one worker thread that runs closures in order.

// Work inside it may use `threads` OpenMP threads. Like every Stream, used by one host thread at a time.
class CpuStream : public Stream {
 public:
  CpuStream(Device& device, int threads);
  ~CpuStream() override;
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;

  Device& device() const noexcept override { return device_; }

  void synchronize() override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void follow(Stream& other) override;
  Buffer allocate(std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void fill(void* to, unsigned char value, std::size_t bytes) override;
  void call(std::function<void()> function) override;
  void begin_capture() override;
  std::unique_ptr<CapturedWork> end_capture() override;
  void launch(CapturedWork& work) override;
  void release(void* data, std::size_t bytes, MemoryPlace place) noexcept override;

  // Runs `work` in stream order, or records it while capturing. Blocks while kQueueLength items wait. An exception
  // that it throws is the stream's error. `skipped`, which must not throw, runs instead once earlier work has
  // failed: for work that others wait for.
  void submit(std::function<void()> work, std::function<void()> skipped = {});

 private:
  static constexpr std::uint32_t kQueueLength = 256;

  // An empty `run` ends the worker.
  struct Item {
    std::function<void()> run;
    std::function<void()> skipped;
  };

  void push(Item item);
  void follow_within_capture(CpuStream& leader);
  void work(int threads);
  void execute(const Item& item) noexcept;
  void refuse_own_worker(const char* what) const;
  [[noreturn]] void refuse(const std::string& message, const std::string& hint) const;

  Device& device_;
  std::unique_ptr<CpuCapturedWork> capture_;   // while capturing
  CpuCapturedWork* recording_ = nullptr;       // capture_, or that of the stream which this one follows
  CpuCapturedWork::Branch* branch_ = nullptr;  // of it: where submissions go meanwhile

  // A ring between one producer, the host, and one consumer, the worker. Counts wrap around.
  std::array<Item, kQueueLength> ring_;
  alignas(64) std::atomic<std::uint32_t> submitted_{0};
  alignas(64) std::atomic<std::uint32_t> finished_{0};
  std::exception_ptr error_;  // the worker's; the host's once finished_ has caught up
  std::thread worker_;        // last: starts when the rest is there
};

}  // namespace headrace
