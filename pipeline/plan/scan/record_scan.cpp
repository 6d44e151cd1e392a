#include "headrace/pipeline/plan/scan/record_scan.h"

#include <fmt/format.h>
#include <tbb/info.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/plan/scan/retry.h"

namespace headrace {
namespace {

using std::chrono::milliseconds;

// Records that the system goes on refusing before none is waited for any more: then it is no matter of a moment.
constexpr int kMaxInVain = 16;
// What threads in somebody else's function are given to come back, all of them together.
constexpr milliseconds kScanGrace{300};

// What a thread has been at for longer than `seconds`; empty where none has.
std::string what_takes_longer_than(double seconds, const std::vector<EngineThread>& threads) {
  for (const EngineThread& thread : threads) {
    std::string doing = thread.state().doing();
    const std::uint64_t since = thread.state().since_ns(), now = now_ns();
    if (!doing.empty() && now > since && static_cast<double>(now - since) > seconds * 1e9) return doing;
  }
  return {};
}

}  // namespace

// How many threads have not ended.
class RecordScan::Running {
 public:
  void enter() {
    const std::lock_guard lock(mutex_);
    ++threads_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --threads_;
    left_.notify_all();
  }
  // Whether none is left, `pause` from now at the latest.
  bool ended_within(milliseconds pause) {
    std::unique_lock lock(mutex_);
    return left_.wait_for(lock, pause, [this] { return threads_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  std::size_t threads_ = 0;  // by mutex_
};

// As many as the system allows, up to `most`; throws why where it allows none.
std::vector<EngineThread> RecordScan::start(const std::shared_ptr<RecordScan>& scan, std::size_t most,
                                            const std::shared_ptr<Running>& running) {
  std::vector<EngineThread> threads;
  threads.reserve(most);
  for (std::size_t i = 0; i < most; ++i) {
    running->enter();
    try {
      threads.emplace_back([scan, running](ThreadState& state) {
        scan->work(state);
        running->leave();
      });
    } catch (const std::exception&) {
      running->leave();
      if (threads.empty()) throw;
      break;
    }
  }
  return threads;
}

void RecordScan::run(const std::shared_ptr<RecordScan>& scan) {
  const std::uint64_t blocks = (scan->positions_ + kBlock - 1) / kBlock;
  const auto most = static_cast<std::uint64_t>(tbb::info::default_concurrency());
  const auto count = static_cast<std::size_t>(std::min(blocks, most));
  const auto running = std::make_shared<Running>();
  std::vector<EngineThread> threads = start(scan, count, running);
  std::string stalled;
  while (stalled.empty() && !running->ended_within(milliseconds(50))) {
    if (scan->stall_timeout_seconds_ > 0) stalled = what_takes_longer_than(scan->stall_timeout_seconds_, threads);
  }
  scan->stop();
  const auto deadline = std::chrono::steady_clock::now() + kScanGrace;
  for (EngineThread& thread : threads) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    thread.end(std::max(left, milliseconds(0)));
  }
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

void RecordScan::visit_block(Visitor& visitor, std::uint64_t first, ThreadState& state) {
  const std::uint64_t end = std::min(first + kBlock, positions_);
  for (std::uint64_t position = first; position < end && !error_.is_beyond(position); ++position) {
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
    return read_with_retries([&] { return read_once(record, scratch, state); },
                             [&] { return in_vain_.load(std::memory_order_relaxed) < kMaxInVain; });
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

}  // namespace headrace
