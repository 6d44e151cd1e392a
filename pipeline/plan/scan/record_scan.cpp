#include "headrace/pipeline/plan/scan/record_scan.h"

#include <fmt/format.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/tasks/retry.h"
#include "headrace/pipeline/tasks/worker_allowance.h"

namespace headrace {
namespace {

// After this many records that the system refused permanently, none is retried: the fault does not pass.
constexpr int kMaxInVain = 16;
// The time given to tasks in user code to return, all of them together.
constexpr double kScanGraceSeconds = 0.3;

thread_local const std::function<void()>* innermost = nullptr;

}  // namespace

// Shared by the tasks of a scan and the thread that waits for them: everything that an abandoned task may still
// touch.
class RecordScan::Tasks : public std::enable_shared_from_this<Tasks> {
 public:
  Tasks(std::shared_ptr<RecordScan> scan, int count) : scan_(std::move(scan)), arena_(count, 0) {
    for (int i = 0; i < count; ++i) states_.push_back(std::make_unique<ThreadState>());
  }

  void start() {
    for (const auto& state : states_) {
      {
        const std::lock_guard lock(mutex_);
        ++running_;
      }
      arena_.enqueue([tasks = shared_from_this(), &own = *state] { tasks->run(own); });
    }
  }
  // Whether none is left, `pause` from now at the latest.
  bool ended_within(std::chrono::milliseconds pause) {
    std::unique_lock lock(mutex_);
    return left_.wait_for(lock, pause, [this] { return running_ == 0; });
  }
  // Describes a task's step that has taken longer than `seconds`; empty if there is none.
  std::string what_takes_longer_than(double seconds) const {
    for (const auto& state : states_) {
      std::string doing = state->doing();
      const std::uint64_t since = state->since_ns(), now = now_ns();
      if (!doing.empty() && now > since && static_cast<double>(now - since) > seconds * 1e9) return doing;
    }
    return {};
  }
  // Tells the scan to stop. Tasks in user code are left there after a while, and keep the scan; where all have
  // come to their end nothing does.
  void end() {
    scan_->stop();
    const std::uint64_t deadline = system_clock().after(kScanGraceSeconds);
    for (const auto& state : states_) state->end(system_clock(), deadline);
    if (ended_within(std::chrono::milliseconds(0))) scan_.reset();
  }

 private:
  void run(ThreadState& state) {
    state.start();
    try {
      scan_->work(state);
    } catch (const Abandoned&) {
      return;  // nobody counts it any more
    }
    state.finish();
    const std::lock_guard lock(mutex_);
    --running_;
    left_.notify_all();
  }

  std::shared_ptr<RecordScan> scan_;
  tbb::task_arena arena_;  // as long as there are tasks in it
  std::vector<std::unique_ptr<ThreadState>> states_;
  std::mutex mutex_;
  std::condition_variable left_;
  std::size_t running_ = 0;  // by mutex_: enqueued or running
};

void RecordScan::run(const std::shared_ptr<RecordScan>& scan) {
  const std::uint64_t blocks = (scan->positions_ + kBlock - 1) / kBlock;
  if (blocks == 0) return;
  const auto processors = static_cast<std::uint64_t>(tbb::info::default_concurrency());
  const int count = static_cast<int>(std::min(blocks, processors));
  const WorkerAllowance allowance(count);
  const auto tasks = std::make_shared<Tasks>(scan, count);
  tasks->start();
  std::string stalled;
  try {
    while (stalled.empty() && !tasks->ended_within(kScanPause)) {
      ScanPoll::look();
      if (scan->stall_timeout_seconds_ > 0) stalled = tasks->what_takes_longer_than(scan->stall_timeout_seconds_);
    }
  } catch (...) {
    tasks->end();
    throw;
  }
  tasks->end();
  if (!stalled.empty()) {
    throw Error(
        ErrorCode::kTimeout,
        fmt::format("{} had not come back after {} s, in the pass over all records of '{}' that comes before "
                    "the first batch",
                    stalled, scan->stall_timeout_seconds_, scan->source().info().name),
        "see why it blocks, or allow it more time");
  }
  scan->error_.raise();
}

void RecordScan::work(ThreadState& state) {
  try {
    const std::unique_ptr<Visitor> visitor = create_visitor(state);
    for (std::uint64_t first = 0; (first = next_.fetch_add(kBlock)) < positions_;)
      visit_block(*visitor, first, state);
    visitor->finish();
  } catch (const Abandoned&) {
    throw;
  } catch (...) {
    error_.note(0, std::current_exception());
  }
}

// A source behind a network fetches a block's records at once.
void RecordScan::announce(std::uint64_t first, std::uint64_t end) const {
  if (!is_url(source_->info().name)) return;
  std::vector<std::uint64_t> records;
  for (std::uint64_t position = first; position < end; ++position) records.push_back(record_at(position));
  source_->will_read(records);
}

void RecordScan::visit_block(Visitor& visitor, std::uint64_t first, ThreadState& state) {
  const std::uint64_t end = std::min(first + kBlock, positions_);
  announce(first, end);
  for (std::uint64_t position = first; position < end && !error_.is_beyond(position); ++position) {
    if (stopped_.load(std::memory_order_relaxed)) return;
    try {
      visitor.visit(position);
    } catch (const Abandoned&) {
      throw;
    } catch (...) {
      error_.note(position, std::current_exception());
    }
    state.idle();
  }
}

RecordView RecordScan::read(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state) {
  try {
    return read_with_retries(
        system_clock(), [&] { return read_once(record, scratch, state); },
        [&] {
          return !stopped_.load(std::memory_order_relaxed) &&
                 in_vain_.load(std::memory_order_relaxed) < kMaxInVain;
        });
  } catch (const DataError& error) {
    if (is_refusal(error)) in_vain_.fetch_add(1, std::memory_order_relaxed);
    throw;
  }
}

RecordView RecordScan::read_once(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state) const {
  if (source_->info().resident) return source_->read(record, scratch);
  RecordView view;
  state.begin(kReading, record);
  run_user_code(state, [&] { view = source_->read(record, scratch); });
  return view;
}

ScanPoll::ScanPoll(std::function<void()> look) : look_(std::move(look)), outer_(innermost) {
  if (look_) innermost = &look_;
  remote::set_wait_poll(innermost);
}

ScanPoll::~ScanPoll() {
  innermost = outer_;
  remote::set_wait_poll(outer_);
}

void ScanPoll::look() {
  if (innermost != nullptr) (*innermost)();
}

}  // namespace headrace
