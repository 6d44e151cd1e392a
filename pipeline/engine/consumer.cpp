// next(): what consumers call.
#include <fmt/format.h>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/engine/slot_lease.h"
#include "headrace/pipeline/engine/stream_engine.h"

namespace headrace {
namespace {

constexpr int kSpins = 200;
// By this thread, in next() of whichever replica.
thread_local std::uint64_t waited_ns = 0;

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
  const std::uint64_t arrived = now_ns();
  Consumer& consumer = consumers_[static_cast<std::size_t>(replica)];
  if (!consumer.failed.empty()) {
    throw Error(ErrorCode::kCancelled, "the stream ended with an error: " + consumer.failed);
  }
  const std::uint64_t sequence = consumer.taken.load(std::memory_order_relaxed);
  if (sequence >= schedule_.batches()) return std::nullopt;
  arrive(consumer, sequence, arrived);
  if (replica == 0) tune(sequence, arrived);
  Slot& slot = slot_of(sequence);
  const bool is_ready = slot.ready.load(std::memory_order_acquire) == sequence + 1;
  consumer.asked_ready.fetch_add(is_ready ? 1 : 0, std::memory_order_relaxed);
  std::uint64_t waiting = 0;
  for (const auto& other : slots_) waiting += other->ready.load(std::memory_order_acquire) > sequence ? 1 : 0;
  consumer.ready_sum.fetch_add(waiting, std::memory_order_relaxed);
  consumer.asked.fetch_add(1, std::memory_order_relaxed);

  wait_until_ready(slot, sequence, replica);
  count_noted(consumer, slot, replica);
  count_bad(consumer, slot, replica);
  if (slot.failure) {
    consumer.failed = describe(slot.failure->what);
    slot.failure->raise();
  }
  const SlotShare& share = slot.shares[static_cast<std::size_t>(replica)];
  BatchPosition position = slot.position;
  position.first_row = share.first;
  auto lease = std::make_unique<SlotLease>(*this, slot, replica);
  consumer.examples.fetch_add(static_cast<std::uint64_t>(share.rows), std::memory_order_relaxed);
  consumer.taken.store(sequence + 1);
  leave(consumer, sequence, arrived, static_cast<std::uint64_t>(share.rows));
  return Batch(
      position, share.rows, &plan_.fields, share.tensors,
      std::span(slot.records).subspan(static_cast<std::size_t>(share.first), static_cast<std::size_t>(share.rows)),
      slot.bad, share.ready.get(), std::move(lease));
}

// A thread that takes the batches of several replicas in turn is not busy for one while it waits for another.
void StreamEngine::arrive(Consumer& consumer, std::uint64_t sequence, std::uint64_t now) {
  if (consumer.left_ns == 0) return;
  const std::uint64_t away = now - consumer.left_ns;
  const std::uint64_t waited = waited_ns > consumer.waited_ns ? waited_ns - consumer.waited_ns : 0;
  consumer.busy.add(consumer.left_rows, away - std::min(away, waited));
  if (consumer.trace != nullptr) {
    consumer.trace->add({.name = "consumer",
                         .begin_ns = consumer.left_ns,
                         .end_ns = now,
                         .batch = sequence - 1,
                         .items = consumer.left_rows});
  }
}

void StreamEngine::leave(Consumer& consumer, std::uint64_t sequence, std::uint64_t arrived, std::uint64_t rows) {
  const std::uint64_t now = now_ns();
  waited_ns += now - arrived;
  consumer.waits.add(now - arrived);
  consumer.left_ns = now;
  consumer.left_rows = rows;
  consumer.waited_ns = waited_ns;
  if (consumer.trace != nullptr) {
    consumer.trace->add({.name = "next", .begin_ns = arrived, .end_ns = now, .batch = sequence, .items = rows});
  }
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
  const auto done = [&] { return ready() || broken_off_ || stopped_.load(); };
  bool in_time = true;
  if (options_.stall_timeout_seconds > 0) {
    in_time = ready_.wait_for(lock, limit, done);
  } else {
    ready_.wait(lock, done);
  }
  consumers_[static_cast<std::size_t>(replica)].stall_ns.fetch_add(watch.nanoseconds(), std::memory_order_relaxed);
  if (in_time) {
    if (!ready() && !stopped_.load()) raise_broken_off(lock, replica);
    lock.unlock();
    return refuse_stopped();
  }
  const std::string whom = whom_we_wait_for(slot, sequence, replica);
  throw Error(ErrorCode::kTimeout, fmt::format("batch {} was not there after {} s: {}", sequence,
                                               options_.stall_timeout_seconds, whom));
}

// A thread ended before its time: the batches it would have made do not come.
void StreamEngine::raise_broken_off(std::unique_lock<std::mutex>& lock, int replica) {
  const Failure failure = *broken_off_;
  lock.unlock();
  consumers_[static_cast<std::size_t>(replica)].failed = describe(failure.what);
  failure.raise();
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
