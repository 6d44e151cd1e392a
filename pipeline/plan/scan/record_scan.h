// A pass over a source's records before there is a loader.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/devices/base/failures.h"
#include "headrace/pipeline/source.h"
#include "headrace/pipeline/tasks/thread_state.h"

namespace headrace {

inline constexpr double kScanStallSeconds = 120;  // as a loader's
// The interval at which a thread that waits for a scan calls ScanPoll::look() and checks for stalled tasks.
inline constexpr std::chrono::milliseconds kScanPause{50};

// Visits every position once, in oneTBB tasks of a separate arena, since the caller's may be busy. Reads are
// watched, and retried as in the engine. The tasks share ownership of the scan with the caller: one of them may be
// left behind in user code that does not return.
class RecordScan {
 public:
  // The number of positions that one task visits, in ascending order.
  static constexpr std::uint64_t kBlock = 64;

  // A call or read that takes longer than `stall_timeout_seconds` ends the scan; 0: no limit.
  RecordScan(SourcePtr source, std::uint64_t positions, double stall_timeout_seconds)
      : source_(std::move(source)), positions_(positions), stall_timeout_seconds_(stall_timeout_seconds) {}
  virtual ~RecordScan() = default;
  RecordScan(const RecordScan&) = delete;
  RecordScan& operator=(const RecordScan&) = delete;

  // Returns when all positions were visited. Throws the error of the smallest position, Error(kTimeout) with the
  // step and the record that took too long, and as this thread's ScanPoll does.
  static void run(const std::shared_ptr<RecordScan>& scan);

 protected:
  // One task's part of the scan.
  class Visitor {
   public:
    virtual ~Visitor() = default;
    virtual void visit(std::uint64_t position) = 0;
    // Called after the last visit.
    virtual void finish() {}
  };
  virtual std::unique_ptr<Visitor> create_visitor(ThreadState& state) = 0;
  // Returns the record read at a position, by which it is announced to the source. Thread-safe.
  virtual std::uint64_t record_at(std::uint64_t position) const = 0;

  const Source& source() const noexcept { return *source_; }
  // Returns the record, for a visitor. Throws as read_with_retries() does.
  RecordView read(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state);

 private:
  class Tasks;

  void work(ThreadState& state);
  void announce(std::uint64_t first, std::uint64_t end) const;
  void visit_block(Visitor& visitor, std::uint64_t first, ThreadState& state);
  RecordView read_once(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state) const;
  void stop() noexcept {
    stopped_.store(true);
    next_.store(positions_);
  }

  SourcePtr source_;
  std::uint64_t positions_;
  double stall_timeout_seconds_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> stopped_{false};  // the remaining positions need not be visited
  std::atomic<int> in_vain_{0};       // records that the system refused permanently
  FirstError error_;
};

}  // namespace headrace
