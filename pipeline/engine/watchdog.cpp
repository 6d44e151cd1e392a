// What a consumer that waited too long is told.
#include <fmt/format.h>

#include <limits>

#include "headrace/pipeline/engine/stream_engine.h"

namespace headrace {

// The step that has been at work longest, over all threads.
std::string StreamEngine::what_threads_do() const {
  std::string doing;
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  const auto look_at = [&](const std::vector<EngineThread>& threads) {
    for (const EngineThread& thread : threads) {
      const std::string now = thread.state().doing();
      if (now.empty() || thread.state().since_ns() >= oldest) continue;
      oldest = thread.state().since_ns();
      doing = now;
    }
  };
  look_at(readers_);
  look_at(workers_);
  return doing;
}

// Called with the mutex held.
std::string StreamEngine::whom_we_wait_for(const Slot& slot, std::uint64_t sequence, int replica) const {
  if (slot.sequence == sequence) {
    if (slot.assembled) return fmt::format("waiting for the copy of batch {} to its devices", sequence);
    const std::string doing = what_threads_do();
    return fmt::format("waiting for {}", doing.empty() ? "the compute threads" : doing);
  }
  if (slot.held == 0) return "waiting for the consumer's stream to pass the release of an earlier batch";
  for (int r = 0; r < layout_.replicas; ++r) {
    const std::uint64_t taken = consumers_[static_cast<std::size_t>(r)].taken.load();
    if (r != replica && taken <= slot.sequence) return fmt::format("replica {} has not taken batch {}", r, taken);
  }
  for (int r = 0; r < layout_.replicas; ++r) {
    if (r == replica || slot.shares[static_cast<std::size_t>(r)].released) continue;
    return fmt::format("replica {} holds batch {}: release it or raise prefetch", r, slot.sequence);
  }
  return fmt::format("all {} slots are held by the consumer: release a batch or raise prefetch", slots_.size());
}

}  // namespace headrace
