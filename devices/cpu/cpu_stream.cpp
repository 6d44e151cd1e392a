#include "headrace/devices/cpu/cpu_stream.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/cpu/cpu_event.h"
#include "headrace/devices/device.h"

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

namespace {

// One launch of captured work. Made by the host; each branch then runs once, on its own stream. Thread-safe over
// branches.
class CpuLaunch {
 public:
  explicit CpuLaunch(CpuCapturedWork& work) : work_(work), points_(work.resolve()) {}

  // Runs the launching stream's branch; throws the launch's first error when all branches are done.
  void run_origin() {
    run(0);
    failure_.raise();
  }
  // Runs it on a stream that failed earlier: only the steps that must happen even then.
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

}  // namespace

CpuStream::CpuStream(Device& device, int threads)
    : device_(device),
      worker_(start_thread("a stream of " + device.info().name, [this, threads] { work(threads); })) {}

CpuStream::~CpuStream() {
  push({});
  worker_.join();
}

void CpuStream::synchronize() {
  if (recording_ != nullptr) refuse("synchronize() while the stream is capturing", "call end_capture() first");
  refuse_own_worker("synchronize()");
  const std::uint32_t target = submitted_.load(std::memory_order_relaxed);
  for (std::uint32_t seen; (seen = finished_.load(std::memory_order_acquire)) != target;) {
    wait_while(finished_, seen);
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void CpuStream::record(Event& event) {
  auto* mine = dynamic_cast<CpuEvent*>(&event);
  if (mine == nullptr) refuse("record() of an event of another kind of device", "use an event of this device");
  if (branch_ != nullptr) return branch_->steps.add_record(*mine);
  const auto reach = [point = mine->renew()] { point->reach(); };
  push({.run = reach, .skipped = reach});
}

void CpuStream::wait(const Event& event) {
  const auto* mine = dynamic_cast<const CpuEvent*>(&event);
  if (mine == nullptr) {
    refuse("wait() for an event of another kind of device", "wait for it on the host, with Event::wait()");
  }
  if (branch_ != nullptr) return branch_->steps.add_wait(*mine);
  auto point = mine->last();
  if (point == nullptr || point->reached()) return;
  const auto wait = [point = std::move(point)] { point->wait(); };
  push({.run = wait, .skipped = wait});
}

void CpuStream::follow(Stream& other) {
  auto* leader = dynamic_cast<CpuStream*>(&other);
  if (leader == nullptr) {
    refuse("follow() of a stream of another kind of device", "wait for it on the host, with synchronize()");
  }
  if (leader == this) return;
  if (recording_ != nullptr || leader->recording_ != nullptr) return follow_within_capture(*leader);
  const auto point = std::make_shared<CpuPoint>(CpuTiming::kNo);
  leader->push({.run = [point] { point->reach(); }, .skipped = [point] { point->reach_failed(); }});
  const auto wait = [this, point] {
    point->wait();
    if (!point->failed()) return;
    throw DeviceError(ErrorCode::kCancelled, "a stream that this one follows has failed", device_.info().name);
  };
  push({.run = wait, .skipped = [point] { point->wait(); }});
}

void CpuStream::follow_within_capture(CpuStream& leader) {
  if (recording_ == nullptr) {
    recording_ = leader.recording_;
    branch_ = &recording_->add_branch(*this);
  }
  if (recording_ != leader.recording_) {
    refuse("follow() of a stream outside of the capture", "let that stream follow this one first");
  }
  recording_->follow(*leader.branch_, *branch_);
}

// The device gives the bytes at once and gets them back by work of the stream, even after an error.
Buffer CpuStream::allocate(std::size_t bytes) {
  if (recording_ != nullptr) refuse("allocate() while the stream is capturing", "allocate before begin_capture()");
  Buffer given = device_.allocate(bytes);
  if (!given) return {};
  return {*this, given.detach(), bytes, MemoryPlace::kDevice};
}

void CpuStream::release(void* data, std::size_t bytes, MemoryPlace place) noexcept {
  const auto give_back = [this, data, bytes, place] { device_.release(data, bytes, place); };
  if (std::this_thread::get_id() == worker_.get_id()) return give_back();  // against the rules, but no deadlock
  try {
    push({.run = give_back, .skipped = give_back});
  } catch (const std::exception&) {  // no memory for the item: the host waits
    const std::uint32_t target = submitted_.load(std::memory_order_relaxed);
    for (std::uint32_t seen; (seen = finished_.load(std::memory_order_acquire)) != target;) {
      wait_while(finished_, seen);
    }
    give_back();
  }
}

void CpuStream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) submit([=] { std::memcpy(to, from, bytes); });
}

void CpuStream::fill(void* to, unsigned char value, std::size_t bytes) {
  if (bytes != 0) submit([=] { std::memset(to, value, bytes); });
}

void CpuStream::call(std::function<void()> function) { submit(std::move(function)); }

void CpuStream::begin_capture() {
  if (recording_ != nullptr) refuse("begin_capture() while the stream is capturing", "captures do not nest");
  capture_ = std::make_unique<CpuCapturedWork>();
  recording_ = capture_.get();
  branch_ = &capture_->origin();
}

std::unique_ptr<CapturedWork> CpuStream::end_capture() {
  if (!capture_) refuse("end_capture() without begin_capture()", {});
  recording_ = nullptr;
  branch_ = nullptr;
  for (const CpuCapturedWork::Branch& branch : capture_->branches()) {
    if (branch.stream == nullptr) continue;
    branch.stream->recording_ = nullptr;
    branch.stream->branch_ = nullptr;
  }
  auto work = std::exchange(capture_, nullptr);
  if (!work->joined()) refuse("a stream that follows the capture is not waited for", "follow() it before the end");
  return work;
}

void CpuStream::launch(CapturedWork& work) {
  if (recording_ != nullptr) {
    refuse("launch() while the stream is capturing", "captures do not nest: launch it afterwards");
  }
  auto* mine = dynamic_cast<CpuCapturedWork*>(&work);
  if (mine == nullptr) refuse("launch() of work captured by another kind of device", {});
  const auto& branches = mine->branches();
  if (std::ranges::any_of(branches, [&](const auto& branch) { return branch.stream == this; })) {
    refuse("launch() on a stream that followed the one which captured", "it runs its own part of the work");
  }
  const auto launched = std::make_shared<CpuLaunch>(*mine);
  for (std::size_t i = 1; i < branches.size(); ++i) {
    const auto run = [launched, i] { launched->run(i); };
    branches[i].stream->push({.run = run, .skipped = run});
  }
  push({.run = [launched] { launched->run_origin(); }, .skipped = [launched] { launched->skip_origin(); }});
}

void CpuStream::submit(std::function<void()> work, std::function<void()> skipped) {
  HEADRACE_CHECK(work != nullptr, "submit() of an empty function");
  if (branch_ != nullptr) return branch_->steps.add(std::move(work), std::move(skipped));
  push({.run = std::move(work), .skipped = std::move(skipped)});
}

void CpuStream::push(Item item) {
  refuse_own_worker("submitting");
  const std::uint32_t next = submitted_.load(std::memory_order_relaxed);
  for (std::uint32_t seen; next - (seen = finished_.load(std::memory_order_acquire)) == kQueueLength;) {
    wait_while(finished_, seen);
  }
  ring_[next % kQueueLength] = std::move(item);
  submitted_.store(next + 1);
  submitted_.notify_one();
}

void CpuStream::work(int threads) {
  omp_set_num_threads(threads);
  for (std::uint32_t next = 0;; ++next) {
    wait_while(submitted_, next);
    {
      const Item item = std::exchange(ring_[next % kQueueLength], {});
      if (!item.run) return;
      execute(item);
    }  // the closures are destroyed before the item counts as finished
    finished_.store(next + 1);
    finished_.notify_all();
  }
}

void CpuStream::execute(const Item& item) noexcept {
  try {
    if (!error_) {
      item.run();
    } else if (item.skipped) {
      item.skipped();
    }
  } catch (...) {
    error_ = std::current_exception();
  }
}

void CpuStream::refuse_own_worker(const char* what) const {
  if (std::this_thread::get_id() != worker_.get_id()) return;
  refuse(std::string(what) + " from within this stream's own work", "a host function in stream order must not");
}

void CpuStream::refuse(const std::string& message, const std::string& hint) const {
  throw DeviceError(ErrorCode::kInvalidArgument, message, device_.info().name, hint);
}

}  // namespace headrace
