// How a record's bytes are had: from the cache, else from the source, again where the system refuses for a moment.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/pipeline/engine/run_plan.h"
#include "headrace/pipeline/tasks/thread_state.h"

namespace headrace {

// Thread-safe.
class RecordReader {
 public:
  // `stopped`: nothing is asked for again. `clock`: retries wait by it. All must outlive this.
  RecordReader(const RunPlan& run, const std::atomic<bool>& stopped, const Clock& clock)
      : run_(run), stopped_(stopped), clock_(clock) {}

  // A record's cached sample, empty where there is none. What a filter could not judge is not looked for: throws
  // FilterError.
  std::span<const std::byte> find_cached(std::uint64_t record, std::vector<std::byte>& scratch) const;
  // After find_cached(): the source's bytes. Throws what read_with_retries() does.
  RecordView read(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state) const;

  // Small samples come from all over memory, and so does what a cache knows of each: both are fetched while others
  // are worked on. `records` come after this one; where the next one's sample lies.
  std::span<const std::byte> look_ahead(std::span<const std::uint64_t> records) const noexcept;

 private:
  RecordView read_once(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state) const;

  const RunPlan& run_;
  const std::atomic<bool>& stopped_;
  const Clock& clock_;
};

}  // namespace headrace
