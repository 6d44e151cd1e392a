#include "headrace/pipeline/engine/delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr int kSpins = 200;
constexpr double kLookSeconds = 0.05;  // between two calls of LoaderOptions::while_waiting
// By this thread, in next() of whichever replica.
thread_local std::uint64_t waited_here_ns = 0;

// A Batch's hold on its slot.
class SlotLease final : public BatchLease {
 public:
  SlotLease(Ring& ring, Slot& slot, int replica, std::shared_ptr<const void> owner)
      : owner_(std::move(owner)), ring_(&ring), slot_(&slot), replica_(replica) {
    ring.take(slot);
  }
  ~SlotLease() override { release(nullptr); }
  SlotLease(const SlotLease&) = delete;
  SlotLease& operator=(const SlotLease&) = delete;

  // The first call counts.
  void release(Stream* consumer) noexcept override {
    if (Ring* const ring = std::exchange(ring_, nullptr); ring != nullptr)
      ring->release(*slot_, replica_, consumer);
  }

 private:
  std::shared_ptr<const void> owner_;  // of the ring
  Ring* ring_;                         // null once released
  Slot* slot_;
  int replica_;
};

}  // namespace

Delivery::Delivery(const RunPlan& run, Ring& ring, const StallReport& stalls, Trace* trace)
    : run_(run), ring_(ring), stalls_(stalls), spare_rows_(std::make_shared<SpareRows>(ring.size())) {
  const ErrorPolicy& errors = run.options.errors;
  if (errors.tally != nullptr) errors.tally->begin(run.source().info());
  if (!errors.quarantine.empty()) quarantine_.emplace(errors.quarantine);
  for (int r = 0; r < run.layout.local_replicas; ++r) {
    consumers_.push_back(std::make_unique<Consumer>(run, quarantine_ ? &*quarantine_ : nullptr, r == 0));
    consumers_.back()->taken.store(run.first);
    if (trace != nullptr) consumers_.back()->trace = &trace->ring(fmt::format("consumer {}", r));
  }
}

std::uint64_t Delivery::position() const noexcept {
  std::uint64_t sequence = consumers_.front()->taken.load();
  for (const auto& consumer : consumers_) sequence = std::min(sequence, consumer->taken.load());
  return sequence;
}

std::optional<Batch> Delivery::next(int replica, std::shared_ptr<const void> owner) {
  if (replica < 0 || replica >= run_.layout.local_replicas) {
    throw ConfigError(fmt::format("next({}): there are {} replicas", replica, run_.layout.local_replicas));
  }
  const std::uint64_t arrived = ring_.clock().now();
  Consumer& consumer = *consumers_[static_cast<std::size_t>(replica)];
  if (!consumer.failed.empty()) {
    throw Error(ErrorCode::kCancelled, "the stream ended with an error: " + consumer.failed);
  }
  const std::uint64_t sequence = consumer.taken.load(std::memory_order_relaxed);
  if (sequence >= ring_.end()) return end_stream(consumer);
  arrive(consumer, sequence, arrived);
  count_ready(consumer, sequence);
  wait_until_out(consumer, sequence, replica);
  if (sequence >= ring_.end()) return end_stream(consumer);
  Slot& slot = ring_.slot_of(sequence);
  try {
    consumer.bad.add(slot);
  } catch (const Error& error) {
    consumer.failed = error.message();
    throw;
  }
  if (slot.failure) {
    consumer.failed = describe(slot.failure->what);
    slot.failure->raise();
  }
  Batch batch = hand_out(consumer, slot, replica, std::move(owner));
  leave(consumer, sequence, arrived, static_cast<std::uint64_t>(batch.examples()));
  return batch;
}

// Returns std::nullopt, or throws the error that broke the stream after its last batch.
std::optional<Batch> Delivery::end_stream(Consumer& consumer) const {
  if (const std::optional<Failure> failure = ring_.end_failure()) {
    consumer.failed = describe(failure->what);
    failure->raise();
  }
  return std::nullopt;
}

// Returns whether a batch may take its rows: the host's rows are the batch, and are not handed out again.
bool Delivery::gives_rows(const SlotShare& share) const noexcept {
  return run_.options.owned_batches && run_.options.headspace == 0 && !share.device && !share.results &&
         share.where->info().host_memory;
}

Batch Delivery::hand_out(Consumer& consumer, Slot& slot, int replica, std::shared_ptr<const void> owner) const {
  SlotShare& share = slot.shares[static_cast<std::size_t>(replica)];
  const auto first = static_cast<std::size_t>(share.first), rows = static_cast<std::size_t>(share.rows);
  BatchContent content{.position = slot.position,
                       .examples = share.rows,
                       .fields = &run_.plan.fields,
                       .tensors = share.tensors,
                       .ragged = run_.plan.ragged,
                       .records = std::span(slot.records).subspan(first, rows),
                       .bad = slot.bad,
                       .ready = share.ready.get(),
                       .device = share.where,
                       .writable = run_.options.headspace == 0 || static_cast<bool>(share.device)};
  content.position.first_row += share.first;
  std::unique_ptr<GivenRows> given;
  if (gives_rows(share)) {
    given = std::make_unique<GivenRows>(spare_rows_, share, slot.layout().local_rows, content.records, content.bad,
                                        owner);
    content = given->shown(content);
  }
  // If the batch takes its rows with it, the slot comes back at once.
  auto lease = std::make_unique<SlotLease>(ring_, slot, replica, std::move(owner));
  slot.mark.take();
  consumer.examples.fetch_add(static_cast<std::uint64_t>(share.rows), std::memory_order_relaxed);
  consumer.taken.store(content.position.sequence + 1);
  if (given != nullptr) return Batch(content, std::move(given));
  return Batch(content, std::move(lease));
}

void Delivery::count_ready(Consumer& consumer, std::uint64_t sequence) const {
  const bool is_out = ring_.slot_of(sequence).mark.is_out(sequence);
  std::uint64_t waiting = 0;
  for (const auto& slot : ring_.slots()) {
    const SlotMark::Value mark = slot->mark.load();
    waiting += mark.is_out() && mark.sequence >= sequence ? 1 : 0;
  }
  consumer.asked_ready.fetch_add(is_out ? 1 : 0, std::memory_order_relaxed);
  consumer.ready_sum.fetch_add(waiting, std::memory_order_relaxed);
  consumer.asked.fetch_add(1, std::memory_order_relaxed);
}

// A thread that takes the batches of several replicas in turn is not busy for one while it waits for another.
void Delivery::arrive(Consumer& consumer, std::uint64_t sequence, std::uint64_t now) {
  if (consumer.left_ns == 0) return;
  const std::uint64_t away = now - consumer.left_ns;
  const std::uint64_t waited = waited_here_ns > consumer.waited_ns ? waited_here_ns - consumer.waited_ns : 0;
  consumer.busy.add(consumer.left_rows, away - std::min(away, waited));
  if (consumer.trace != nullptr) {
    consumer.trace->add({.name = "consumer",
                         .begin_ns = consumer.left_ns,
                         .end_ns = now,
                         .batch = sequence - 1,
                         .items = consumer.left_rows});
  }
}

void Delivery::leave(Consumer& consumer, std::uint64_t sequence, std::uint64_t arrived, std::uint64_t rows) const {
  const std::uint64_t now = ring_.clock().now();
  waited_here_ns += now - arrived;
  consumer.waits.add(now - arrived);
  consumer.left_ns = now;
  consumer.left_rows = rows;
  consumer.waited_ns = waited_here_ns;
  if (consumer.trace != nullptr) {
    consumer.trace->add({.name = "next", .begin_ns = arrived, .end_ns = now, .batch = sequence, .items = rows});
  }
}

// Explains why a batch is not out. If it was not begun, a replica is behind or still holds a batch.
std::string Delivery::why_not_out(std::uint64_t sequence, int replica) const {
  const Slot& slot = ring_.slot_of(sequence);
  if (ring_.is_held_back(sequence))
    return stalls_.why_not_out({.sequence = sequence, .state = SlotState::kWriting});
  const std::lock_guard lock(ring_.mutex());
  const SlotMark::Value mark = slot.mark.load();
  if (mark.sequence == sequence && mark.state != SlotState::kFree) return stalls_.why_not_out(mark);
  if (slot.holders == 0) return "waiting for the consumer's stream to pass the release of an earlier batch";
  for (int r = 0; r < run_.layout.local_replicas; ++r) {
    const std::uint64_t taken = consumers_[static_cast<std::size_t>(r)]->taken.load();
    if (r != replica && taken <= mark.sequence) return fmt::format("replica {} has not taken batch {}", r, taken);
  }
  for (int r = 0; r < run_.layout.local_replicas; ++r) {
    if (r == replica || slot.shares[static_cast<std::size_t>(r)].released) continue;
    return fmt::format("replica {} holds batch {}: release it or raise prefetch", r, mark.sequence);
  }
  return fmt::format("all {} slots are held by the consumer: release a batch or raise prefetch", ring_.size());
}

// As Ring::wait_until_out(), in short waits where the program wants to be called in between.
bool Delivery::wait_within(std::uint64_t sequence, double seconds) const {
  const std::function<void()>& look = run_.options.while_waiting;
  if (!look) return ring_.wait_until_out(sequence, seconds);
  const std::uint64_t end = seconds > 0 ? ring_.clock().after(seconds) : Clock::kNever;
  while (!ring_.wait_until_out(sequence, kLookSeconds)) {
    look();
    if (ring_.clock().now() >= end) return false;
  }
  return true;
}

void Delivery::wait_until_out(Consumer& consumer, std::uint64_t sequence, int replica) {
  const SlotMark& mark = ring_.slot_of(sequence).mark;
  const auto refuse_stopped = [&] {
    if (ring_.stopped().load()) throw Error(ErrorCode::kCancelled, "the loader was stopped");
  };
  refuse_stopped();
  for (int i = 0; i < kSpins; ++i) {
    if (mark.is_out(sequence)) return;
    __builtin_ia32_pause();
  }
  const double limit = run_.options.stall_timeout_seconds;
  const std::uint64_t began = ring_.clock().now();
  const auto count_stall = [&] {
    consumer.wait_ns.fetch_add(ring_.clock().now() - began, std::memory_order_relaxed);
  };
  bool in_time = false;
  try {
    in_time = wait_within(sequence, limit);
  } catch (...) {
    count_stall();
    throw;
  }
  count_stall();
  if (!in_time) {
    throw Error(ErrorCode::kTimeout, fmt::format("batch {} was not there after {} s: {}", sequence, limit,
                                                 why_not_out(sequence, replica)));
  }
  refuse_stopped();
  if (mark.is_out(sequence) || sequence >= ring_.end()) return;
  const std::optional<Failure> failure =
      ring_.broken_off();  // a thread ended: the batches it would have made do not come
  consumer.failed = describe(failure->what);
  failure->raise();
}

}  // namespace headrace
