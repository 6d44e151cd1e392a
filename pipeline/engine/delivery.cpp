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
  if (!run.options.in_order) ready_order_.emplace(run, ring);
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
  std::uint64_t turn = consumers_.front()->taken.load();
  for (const auto& consumer : consumers_) turn = std::min(turn, consumer->taken.load());
  return turn;
}

// Under the lock no turn is chosen, so that the position stays within the turns that are known.
BatchSet Delivery::handed_out() const {
  if (ready_order_) {
    const std::lock_guard lock(ring_.mutex());
    return ready_order_->handed_out(position());
  }
  const std::uint64_t next = run_.earlier.missing(position());
  std::vector<std::uint64_t> ahead = run_.earlier.ahead();
  std::erase_if(ahead, [next](std::uint64_t batch) { return batch <= next; });
  return BatchSet(next, std::move(ahead));
}

std::optional<Batch> Delivery::next(int replica, std::optional<std::uint64_t> epoch,
                                    std::shared_ptr<const void> owner) {
  if (replica < 0 || replica >= run_.layout.local_replicas) {
    throw ConfigError(fmt::format("next({}): there are {} replicas", replica, run_.layout.local_replicas));
  }
  const std::uint64_t arrived = ring_.clock().now();
  Consumer& consumer = *consumers_[static_cast<std::size_t>(replica)];
  if (!consumer.failed.empty()) {
    throw Error(ErrorCode::kCancelled, "the stream ended with an error: " + consumer.failed);
  }
  arrive(consumer, arrived);
  for (std::uint64_t turn = consumer.taken.load(std::memory_order_relaxed);; ++turn) {
    if (is_over(turn)) return end_stream(consumer);
    count_ready(consumer, turn);
    const std::uint64_t sequence = wait(consumer, turn, replica);
    if (sequence >= ring_.end()) return end_stream(consumer);
    if (pass_empty(consumer, sequence, turn)) continue;
    Slot& slot = ring_.find(sequence);
    if (epoch && slot.position.epoch > *epoch) {
      leave(consumer, sequence, arrived, 0);
      return std::nullopt;
    }
    const std::uint64_t end = end_of_epoch(consumer, slot, turn, replica);
    account(consumer, slot);
    Batch batch = hand_out(consumer, slot, turn, replica, end > turn, std::move(owner));
    while (++turn < end) pass_empty(consumer, wait(consumer, turn, replica), turn);
    leave(consumer, sequence, arrived, static_cast<std::uint64_t>(batch.examples()));
    return batch;
  }
}

std::uint64_t Delivery::wait(Consumer& consumer, std::uint64_t turn, int replica) {
  return ready_order_ ? wait_for_any(consumer, turn, replica) : wait_for_batch(consumer, turn, replica);
}

// Counts what is bad in a batch that is out. Throws its failure, or that too much is bad.
template <typename Made>
void Delivery::account(Consumer& consumer, const Made& batch) const {
  try {
    consumer.bad.add(batch);
  } catch (const Error& error) {
    consumer.failed = error.message();
    throw;
  }
  if (!batch.failure) return;
  consumer.failed = describe(batch.failure->what);
  batch.failure->raise();
}

// Passes a batch that is left out; returns false for any other.
bool Delivery::pass_empty(Consumer& consumer, std::uint64_t sequence, std::uint64_t turn) {
  if (!run_.may_leave_out_batches()) return false;
  const std::lock_guard leaving(leaving_);
  const LeftOut::iterator left = leave_out(sequence, turn);
  if (left == left_out_.end()) return false;
  account(consumer, left->second);
  consumer.taken.store(turn + 1);
  const std::lock_guard lock(ring_.mutex());
  if (--left->second.replicas == 0) left_out_.erase(left);
  return true;
}

// Leaves the batch, which is out, out of the stream if it has no example; else returns the end. The first replica
// that meets it gives its slot back for all: one that takes no batch before another has taken the same would wait
// for its own. REQUIRES: leaving_ is held.
Delivery::LeftOut::iterator Delivery::leave_out(std::uint64_t sequence, std::uint64_t turn) {
  if (const auto left = left_out_.find(sequence); left != left_out_.end()) return left;
  Slot& slot = ring_.find(sequence);
  if (slot.failure || slot.position.global_examples > 0) return left_out_.end();
  const EmptyBatch empty{.position = slot.position,
                         .failure = {},
                         .bad = slot.bad,
                         .warned = slot.warned,
                         .oriented = slot.oriented,
                         .ends_epoch = is_last_of_epoch(slot, turn),
                         .replicas = run_.layout.local_replicas};
  ring_.hold(slot);
  LeftOut::iterator left;
  {
    const std::lock_guard lock(ring_.mutex());
    left = left_out_.emplace(sequence, empty).first;
  }
  for (int r = 0; r < run_.layout.local_replicas; ++r) SlotLease(ring_, slot, r, nullptr);
  return left;
}

// Returns the turn after the epoch's last one if the others after this one are left out, otherwise this one. The
// first replica to ask decides for all.
std::uint64_t Delivery::end_of_epoch(Consumer& consumer, Slot& slot, std::uint64_t turn, int replica) {
  if (run_.layout.local_replicas == 1 || !run_.may_leave_out_batches())
    return look_for_end(consumer, slot, turn, replica);
  {
    const std::lock_guard leaving(leaving_);
    if (const auto ending = endings_.find(turn); ending != endings_.end()) {
      const std::uint64_t end = ending->second.end;
      if (--ending->second.replicas == 0) endings_.erase(ending);
      return end;
    }
  }
  const std::uint64_t end = look_for_end(consumer, slot, turn, replica);
  const std::lock_guard leaving(leaving_);
  Ending& ending =
      endings_.try_emplace(turn, Ending{.end = end, .replicas = run_.layout.local_replicas}).first->second;
  const std::uint64_t decided = ending.end;
  if (--ending.replicas == 0) endings_.erase(turn);
  return decided;
}

// Looks as far as batches are made although no consumer returns one; a stream ends with its last batch whatever is
// in it.
std::uint64_t Delivery::look_for_end(Consumer& consumer, Slot& slot, std::uint64_t turn, int replica) {
  if (is_last_of_epoch(slot, turn)) return turn + 1;
  if (slot.failure || !run_.may_leave_out_batches() || run_.source().info().streamed) return turn;
  const bool in_order = !ready_order_ && run_.earlier.ahead().empty();
  const std::uint64_t others = in_order ? run_.epoch_end(turn) - turn - 1 : 1;
  if (!run_.schedule.may_drop_batches() && !consumer.bad.allows_empty(slot, others)) return turn;
  ring_.hold(slot);  // so that it makes way for the others
  for (std::uint64_t ahead = turn + 1; !is_over(ahead) && comes_unaided(ahead); ++ahead) {
    const std::uint64_t sequence = wait(consumer, ahead, replica);
    if (sequence >= ring_.end()) break;
    const std::lock_guard leaving(leaving_);
    const LeftOut::iterator left = leave_out(sequence, ahead);
    if (left == left_out_.end()) break;
    if (left->second.ends_epoch) return ahead + 1;
  }
  return turn;
}

// Returns whether the turn's batch is out or will be, with no batch returned before.
bool Delivery::comes_unaided(std::uint64_t turn) const {
  const std::lock_guard lock(ring_.mutex());
  if (ready_order_ && turn < ready_order_->turns()) return true;
  const std::uint64_t sequence = ready_order_ ? ready_order_->first() : run_.earlier.missing(turn);
  return left_out_.contains(sequence) || ring_.has_slot(sequence);
}

bool Delivery::is_over(std::uint64_t turn) const {
  if (!ready_order_) return run_.earlier.missing(turn) >= ring_.end();
  const std::lock_guard lock(ring_.mutex());
  return ready_order_->is_over(turn);
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

// Returns whether no batch of the epoch is left. An earlier part of the run may have handed out the last ones.
bool Delivery::is_last_of_epoch(const Slot& slot, std::uint64_t turn) const {
  if (ready_order_) {
    const std::lock_guard lock(ring_.mutex());
    return ready_order_->ends_epoch(turn);
  }
  if (run_.earlier.ahead().empty()) return slot.position.last_of_epoch;
  const std::uint64_t sequence = slot.position.sequence;
  return run_.earlier.after(sequence) >= std::min(run_.epoch_end(sequence), ring_.end());
}

Batch Delivery::hand_out(Consumer& consumer, Slot& slot, std::uint64_t turn, int replica, bool ends_epoch,
                         std::shared_ptr<const void> owner) const {
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
  content.position.last_of_epoch = ends_epoch;
  std::unique_ptr<GivenRows> given;
  if (gives_rows(share)) {
    given = std::make_unique<GivenRows>(spare_rows_, share, slot.layout().local_rows, content.records, content.bad,
                                        owner);
    content = given->shown(content);
  }
  // If the batch takes its rows with it, the slot comes back at once.
  auto lease = std::make_unique<SlotLease>(ring_, slot, replica, std::move(owner));
  ring_.hold(slot);
  consumer.examples.fetch_add(static_cast<std::uint64_t>(share.rows), std::memory_order_relaxed);
  consumer.taken.store(turn + 1);
  if (given != nullptr) return Batch(content, std::move(given));
  return Batch(content, std::move(lease));
}

void Delivery::count_ready(Consumer& consumer, std::uint64_t turn) const {
  consumer.asked.fetch_add(1, std::memory_order_relaxed);
  if (!ready_order_) return count_ready_in_order(consumer, run_.earlier.missing(turn));
  const std::lock_guard lock(ring_.mutex());
  const std::uint64_t ready = ready_order_->ready(turn);
  consumer.asked_ready.fetch_add(ready > 0 ? 1 : 0, std::memory_order_relaxed);
  consumer.ready_sum.fetch_add(ready, std::memory_order_relaxed);
}

void Delivery::count_ready_in_order(Consumer& consumer, std::uint64_t sequence) const {
  const bool is_out = ring_.find(sequence).mark.is_out(sequence);
  std::uint64_t waiting = 0;
  for (const auto& slot : ring_.slots()) {
    const SlotMark::Value mark = slot->mark.load();
    waiting += mark.is_out() && mark.sequence >= sequence ? 1 : 0;
  }
  consumer.asked_ready.fetch_add(is_out ? 1 : 0, std::memory_order_relaxed);
  consumer.ready_sum.fetch_add(waiting, std::memory_order_relaxed);
}

// A thread that takes the batches of several replicas in turn is not busy for one while it waits for another.
void Delivery::arrive(Consumer& consumer, std::uint64_t now) {
  if (consumer.left_ns == 0) return;
  const std::uint64_t away = now - consumer.left_ns;
  const std::uint64_t waited = waited_here_ns > consumer.waited_ns ? waited_here_ns - consumer.waited_ns : 0;
  consumer.busy.add(consumer.left_rows, away - std::min(away, waited));
  if (consumer.trace != nullptr) {
    consumer.trace->add({.name = "consumer",
                         .begin_ns = consumer.left_ns,
                         .end_ns = now,
                         .batch = consumer.left_batch,
                         .items = consumer.left_rows});
  }
}

void Delivery::leave(Consumer& consumer, std::uint64_t sequence, std::uint64_t arrived, std::uint64_t rows) const {
  const std::uint64_t now = ring_.clock().now();
  waited_here_ns += now - arrived;
  consumer.waits.add(now - arrived);
  consumer.left_ns = now;
  consumer.left_rows = rows;
  consumer.left_batch = sequence;
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
    if (r == replica) continue;
    if (const auto batch = untaken(r, mark.sequence))
      return fmt::format("replica {} has not taken batch {}", r, *batch);
  }
  for (int r = 0; r < run_.layout.local_replicas; ++r) {
    if (r == replica || slot.shares[static_cast<std::size_t>(r)].released) continue;
    return fmt::format("replica {} holds batch {}: release it or raise prefetch", r, mark.sequence);
  }
  return fmt::format("all {} slots are held by the consumer: release a batch or raise prefetch", ring_.size());
}

// Returns the batch that a replica takes next if it has not taken `sequence`, which is in its slot. With the
// ring's lock.
std::optional<std::uint64_t> Delivery::untaken(int replica, std::uint64_t sequence) const {
  const std::uint64_t turn = consumers_[static_cast<std::size_t>(replica)]->taken.load();
  if (ready_order_) {
    return ready_order_->is_due(turn, sequence) ? std::optional(ready_order_->chosen_batch(turn)) : std::nullopt;
  }
  const std::uint64_t next = run_.earlier.missing(turn);
  return next <= sequence ? std::optional(next) : std::nullopt;
}

std::uint64_t Delivery::first_unchosen() const {
  const std::lock_guard lock(ring_.mutex());
  return ready_order_->first();
}

void Delivery::refuse_stopped() const {
  if (ring_.stopped().load()) throw Error(ErrorCode::kCancelled, "the loader was stopped");
}

// As Ring::wait_until(), in short waits where the program wants to be called in between.
template <typename Done>
bool Delivery::wait_within(const Done& done, double seconds) const {
  const std::function<void()>& look = run_.options.while_waiting;
  if (!look) return ring_.wait_until(done, seconds);
  const std::uint64_t end = seconds > 0 ? ring_.clock().after(seconds) : Clock::kNever;
  while (!ring_.wait_until(done, kLookSeconds)) {
    look();
    if (ring_.clock().now() >= end) return false;
  }
  return true;
}

// Waits until done(), which is called under the ring's lock. Throws what the consumer is told instead of a batch;
// stall() says what is late, and why.
template <typename Done, typename Stall>
void Delivery::wait_until(Consumer& consumer, const Done& done, const Stall& stall) const {
  const std::uint64_t began = ring_.clock().now();
  const auto count_stall = [&] {
    consumer.wait_ns.fetch_add(ring_.clock().now() - began, std::memory_order_relaxed);
  };
  bool in_time = false, is_done = false;
  try {
    in_time = wait_within([&] { return is_done = done(); }, run_.options.stall_timeout_seconds);
  } catch (...) {
    count_stall();
    throw;
  }
  count_stall();
  if (!in_time) throw Error(ErrorCode::kTimeout, stall());
  refuse_stopped();
  if (is_done) return;
  const std::optional<Failure> failure =
      ring_.broken_off();  // a thread ended: the batches it would have made do not come
  consumer.failed = describe(failure->what);
  failure->raise();
}

// Returns the turn's batch, which is out; past the last one, if the stream has ended.
std::uint64_t Delivery::wait_for_batch(Consumer& consumer, std::uint64_t turn, int replica) {
  const std::uint64_t sequence = run_.earlier.missing(turn);
  const auto is_out = [&] { return ring_.find(sequence).mark.is_out(sequence); };
  refuse_stopped();
  for (int i = 0; i < kSpins; ++i) {
    if (is_out()) return sequence;
    __builtin_ia32_pause();
  }
  wait_until(
      consumer, [&] { return is_out() || left_out_.contains(sequence) || sequence >= ring_.end(); },
      [&] {
        return fmt::format("batch {} was not there after {} s: {}", sequence, run_.options.stall_timeout_seconds,
                           why_not_out(sequence, replica));
      });
  return sequence;
}

// As wait_for_batch(), of whichever batch is ready.
std::uint64_t Delivery::wait_for_any(Consumer& consumer, std::uint64_t turn, int replica) {
  refuse_stopped();
  std::optional<std::uint64_t> found;
  wait_until(
      consumer,
      [&] {
        ready_order_->forget(position());
        found = ready_order_->batch_at(turn);
        return found || ready_order_->is_over(turn);
      },
      [&] {
        const std::uint64_t first = first_unchosen();
        return fmt::format("no batch was there after {} s; batch {}, the first of them: {}",
                           run_.options.stall_timeout_seconds, first, why_not_out(first, replica));
      });
  return found.value_or(ring_.end());
}

}  // namespace headrace
