#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/engine/lanes.h"

namespace headrace {
namespace {

void check_known(const char* what, int id, std::vector<int> known) {
  std::erase_if(known, [](int each) { return each < 0; });  // oneTBB's "not known"
  if (id < 0 || std::ranges::find(known, id) != known.end()) return;
  throw ConfigError(fmt::format("there is no {} {}", what, id),
                    known.empty()
                        ? fmt::format("oneTBB knows no {}s of this machine: it needs tbbbind and hwloc", what)
                        : fmt::format("this machine has {}", fmt::join(known, ", ")));
}

class OwnArena final : public ComputeArena {
 public:
  explicit OwnArena(const tbb::task_arena::constraints& constraints) : arena_(constraints, 0) {
    arena_.initialize();
  }

  void enqueue(std::function<void()> task) override { arena_.enqueue(std::move(task)); }
  int max_concurrency() const override { return arena_.max_concurrency(); }

 private:
  tbb::task_arena arena_;
};

}  // namespace

std::shared_ptr<ComputeArena> make_own_arena(int max_concurrency, const ArenaConstraints& constraints) {
  if (constraints.numa_node >= 0) check_known("NUMA node", constraints.numa_node, tbb::info::numa_nodes());
  if (constraints.core_type >= 0) check_known("core type", constraints.core_type, tbb::info::core_types());
  tbb::task_arena::constraints wanted;
  wanted.set_max_concurrency(max_concurrency);
  if (constraints.numa_node >= 0) wanted.set_numa_id(constraints.numa_node);
  if (constraints.core_type >= 0) wanted.set_core_type(constraints.core_type);
  return std::make_shared<OwnArena>(wanted);
}

bool LaneGate::enter() {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  ++inside_;
  return true;
}

void LaneGate::leave() {
  std::shared_ptr<void> kept;  // goes without the lock: it may be the last to hold the whole engine
  const std::lock_guard lock(mutex_);
  --inside_;
  if (inside_ == 0) kept.swap(kept_);
  left_.notify_all();
}

void LaneGate::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void LaneGate::wait_and_keep(int max_inside, std::shared_ptr<void> owner) {
  std::unique_lock lock(mutex_);
  left_.wait(lock, [&] { return inside_ <= max_inside; });
  if (inside_ > 0) kept_ = std::move(owner);
}

Lanes::Lanes(std::shared_ptr<ComputeArena> arena, int max_lanes, std::size_t stages, LaneBody& body,
             MemoryBudget& budget, const Clock& clock)
    : arena_(std::move(arena)), body_(body), clock_(clock) {
  for (int i = 0; i < max_lanes; ++i) lanes_.push_back(std::make_unique<Lane>(stages, budget));
  for (const auto& lane : lanes_) seats_.push_back(lane.get());
  std::ranges::reverse(seats_);
}

void Lanes::set_trace(Trace& trace) {
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    lanes_[i]->state.trace = &trace.ring(fmt::format("compute {}", i));
}

// Work is published before running_ is read here, and a lane that ends lowers running_ before it looks for work a
// last time: one of the two sees what the other did.
void Lanes::wake(std::int64_t wanted) {
  int running = running_.load();
  while (wanted > 0 && running < allowed_.load() && !stopped_.load()) {
    if (!running_.compare_exchange_weak(running, running + 1)) continue;
    try {
      arena_->enqueue([this, gate = gate_] {
        if (!gate->enter()) return;
        run();
        gate->leave();
      });
    } catch (...) {
      running_.fetch_sub(1);
      throw;
    }
    --wanted;
    running = running_.load();
  }
}

bool Lanes::run_here() {
  int running = running_.load();
  if (running >= allowed_.load() || !running_.compare_exchange_strong(running, running + 1)) return false;
  run();
  return true;
}

void Lanes::allow(int lanes) {
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t now = clock_.now();
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const bool is_free = std::ranges::find(seats_, lanes_[i].get()) != seats_.end();
      if (!is_free) continue;
      const std::uint64_t since = lanes_[i]->idle_since.load();
      const bool may_run = static_cast<int>(i) < lanes;
      if (!may_run || since == 0) lanes_[i]->idle_since.store(may_run ? now : 0);
    }
    allowed_.store(lanes);
  }
  if (body_.has_work()) wake(lanes);
}

Lane* Lanes::take_seat() {
  const std::lock_guard lock(mutex_);
  if (stopped_.load() || seats_.empty()) return nullptr;
  Lane* const lane = seats_.back();
  seats_.pop_back();
  const std::uint64_t since = lane->idle_since.exchange(0);
  if (since != 0) lane->state.waits.add(clock_.now() - since);
  lane->state.start();
  return lane;
}

// The seats of the lanes with small numbers are taken first: their memory is warm, and those beyond what is
// allowed stay empty.
void Lanes::leave_seat(Lane& lane) {
  lane.state.idle();
  lane.state.finish();  // before the next one may sit here
  const std::lock_guard lock(mutex_);
  const auto number = [&](const Lane* each) {
    return std::ranges::find(lanes_, each, &std::unique_ptr<Lane>::get) - lanes_.begin();
  };
  const auto before = std::ranges::find_if(seats_, [&](const Lane* each) { return number(each) < number(&lane); });
  seats_.insert(before, &lane);
  if (number(&lane) < allowed_.load()) lane.idle_since.store(clock_.now());
}

void Lanes::run() {
  Lane* const lane = take_seat();
  if (lane != nullptr) {
    try {
      run_in(*lane);
    } catch (const Abandoned&) {
      return;  // nobody counts it any more
    }
    leave_seat(*lane);
  }
  running_.fetch_sub(1);
  if (!stopped_.load() && body_.has_work()) wake(1);
}

void Lanes::run_in(Lane& lane) {
  while (!stopped_.load(std::memory_order_relaxed) &&
         running_.load(std::memory_order_relaxed) <= allowed_.load()) {
    if (!body_.run_next(lane)) return;
  }
}

void Lanes::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_.store(true);
  }
  gate_->close();
}

void Lanes::end(std::uint64_t deadline, std::shared_ptr<void> owner) {
  int abandoned = 0;
  for (const auto& lane : lanes_) abandoned += lane->state.end(clock_, deadline) ? 0 : 1;
  gate_->wait_and_keep(abandoned, std::move(owner));
}

std::uint64_t Lanes::waited_ns(std::uint64_t now) const noexcept {
  std::uint64_t waited = 0;
  for (const auto& lane : lanes_) {
    const std::uint64_t since = lane->idle_since.load(std::memory_order_relaxed);
    waited += lane->state.waits.ns() + (since != 0 && now > since ? now - since : 0);
  }
  return waited;
}

}  // namespace headrace
