// The last collective calls of a worker, kept for the case that the world fails.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace headrace {

enum class CallKind { kAllGather, kAllReduce, kBroadcast };
enum class CallState { kRunning, kDone, kFailed };

struct CallRecord {
  static constexpr std::size_t kMaxMoment = 39;  // characters; longer ones are cut

  std::int64_t number = 0;  // from 1
  CallKind kind = CallKind::kAllGather;
  CallState state = CallState::kRunning;
  std::uint64_t bytes = 0;
  std::int64_t begun_ns = 0;      // system clock, since 1970
  std::uint64_t duration_ns = 0;  // 0 while it runs
  std::array<char, kMaxMoment + 1> moment = {};

  // "all-reduce 17 of 4096 bytes"
  std::string to_string() const;
};

// Keeps the last 1,024 calls. Thread-safe, for one call at a time; allocates memory for texts only.
class CallRing {
 public:
  static constexpr std::size_t kCapacity = 1024;

  void set_moment(std::string_view moment) noexcept;
  void begin(CallKind kind, std::uint64_t bytes) noexcept;
  // Ends the running call; does nothing if none runs.
  void end(CallState state) noexcept;
  // Returns how long the running call has run; 0 if none runs.
  double running_seconds() const noexcept;

  std::int64_t calls() const noexcept;
  // Returns the running or last call, as "all-reduce 17 of 4096 bytes"; empty before the first one.
  std::string last() const;
  // Returns a table, one line for each call that is kept, the oldest first.
  std::string to_text() const;

 private:
  const CallRecord& record_of(std::int64_t number) const noexcept;

  mutable std::mutex mutex_;
  // By mutex_.
  std::array<CallRecord, kCapacity> records_;  // a call stands at its number modulo the capacity
  std::int64_t calls_ = 0;
  std::uint64_t last_begun_ns_ = 0;  // monotonic
  std::array<char, CallRecord::kMaxMoment + 1> moment_ = {};
};

// Writes `head` and the ring's table to "headrace-calls-worker-RANK-PROCESS.txt" in the folder named by
// HEADRACE_WORKERS_DUMP, else in that for temporary files. Returns "its last 57 calls are in FILE", or why there
// is no file.
std::string write_calls(const CallRing& ring, int rank, const std::string& head) noexcept;

}  // namespace headrace
