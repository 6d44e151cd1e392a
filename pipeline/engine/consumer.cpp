// next(): what consumers call.
#include <fmt/format.h>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/engine/slot_lease.h"
#include "headrace/pipeline/engine/stream_engine.h"

namespace headrace {
namespace {

constexpr int kSpins = 200;

}  // namespace

void StreamEngine::refuse_fork() const {
  if (!is_forked()) return;
  throw Error(ErrorCode::kUnsupported, "the loader was started before fork(): its threads are not in this process",
              "make the loader after fork()");
}

std::optional<Batch> StreamEngine::next(int replica) {
  refuse_fork();
  if (replica < 0 || replica >= layout_.replicas) {
    throw ConfigError(fmt::format("next({}): there are {} replicas", replica, layout_.replicas));
  }
  Consumer& consumer = consumers_[static_cast<std::size_t>(replica)];
  if (!consumer.failed.empty()) {
    throw Error(ErrorCode::kCancelled, "the stream ended with an error: " + consumer.failed);
  }
  const std::uint64_t sequence = consumer.taken.load(std::memory_order_relaxed);
  if (sequence >= schedule_.batches()) return std::nullopt;
  Slot& slot = slot_of(sequence);
  std::uint64_t waiting = 0;
  for (const auto& other : slots_) waiting += other->ready.load(std::memory_order_acquire) > sequence ? 1 : 0;
  consumer.ready_sum.fetch_add(waiting, std::memory_order_relaxed);
  consumer.asked.fetch_add(1, std::memory_order_relaxed);

  wait_until_ready(slot, sequence, replica);
  if (slot.failure) {
    consumer.failed = slot.failure->message;
    slot.failure->raise();
  }
  const SlotShare& share = slot.shares[static_cast<std::size_t>(replica)];
  BatchPosition position = slot.position;
  position.first_row = share.first;
  auto lease = std::make_unique<SlotLease>(*this, slot, replica);
  consumer.examples.fetch_add(static_cast<std::uint64_t>(share.rows), std::memory_order_relaxed);
  consumer.taken.store(sequence + 1);
  return Batch(
      position, share.rows, &plan_.fields, share.tensors,
      std::span(slot.records).subspan(static_cast<std::size_t>(share.first), static_cast<std::size_t>(share.rows)),
      share.ready.get(), std::move(lease));
}

void StreamEngine::wait_until_ready(const Slot& slot, std::uint64_t sequence, int replica) {
  const auto ready = [&] { return slot.ready.load(std::memory_order_acquire) == sequence + 1; };
  const auto refuse_stopped = [&] {
    if (stopped_.load()) throw Error(ErrorCode::kCancelled, "the loader was stopped");
  };
  refuse_stopped();
  for (int i = 0; i < kSpins; ++i) {
    if (ready()) return;
    __builtin_ia32_pause();
  }
  const Stopwatch watch;
  const std::chrono::duration<double> limit(options_.stall_timeout_seconds);
  std::unique_lock lock(mutex_);
  const auto done = [&] { return ready() || stopped_.load(); };
  bool in_time = true;
  if (options_.stall_timeout_seconds > 0) {
    in_time = ready_.wait_for(lock, limit, done);
  } else {
    ready_.wait(lock, done);
  }
  consumers_[static_cast<std::size_t>(replica)].stall_ns.fetch_add(watch.nanoseconds(), std::memory_order_relaxed);
  if (in_time) {
    lock.unlock();
    return refuse_stopped();
  }
  const std::string whom = whom_we_wait_for(slot, sequence, replica);
  throw Error(ErrorCode::kTimeout, fmt::format("batch {} was not there after {} s: {}", sequence,
                                               options_.stall_timeout_seconds, whom));
}

void StreamEngine::notify_assembler(const std::weak_ptr<StreamEngine>& weak) {
  const std::shared_ptr<StreamEngine> engine = weak.lock();
  if (engine == nullptr) return;
  { const std::lock_guard lock(engine->mutex_); }  // so that it is not between its look and its sleep
  engine->assembler_.notify_one();
}

void StreamEngine::release(Slot& slot, int replica, Stream* consumer) noexcept {
  SlotShare& share = slot.shares[static_cast<std::size_t>(replica)];
  bool fenced = false;
  try {
    if (consumer != nullptr) {
      consumer->record(*share.fence);
      fenced = true;
      // A device that copies is not slowed down by a call in its stream: there the assembler looks for itself.
      if (!copies(share)) consumer->call([engine = weak_from_this()] { notify_assembler(engine); });
    }
  } catch (const std::exception&) {
    // A stream that cannot record has failed: its work is over, and its own error says so.
  }
  {
    const std::lock_guard lock(mutex_);
    share.fenced = fenced;
    share.released = true;
    --slot.held;
  }
  assembler_.notify_one();
}

}  // namespace headrace
