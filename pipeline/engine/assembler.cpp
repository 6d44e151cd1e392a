#include "headrace/pipeline/engine/assembler.h"

#include <algorithm>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {
namespace {

constexpr std::size_t kWorthAReader = std::size_t{1} << 16;  // bytes of a sample

// What the products of bandwidth and delay that occur need: a gigabyte a second over 60 ms.
constexpr std::uint64_t kMaxWindow = std::uint64_t{64} << 20;

// Records to have announced after those of a batch: small batches alone would leave the line idle.
constexpr std::uint64_t kRecordsAhead = 256;

}  // namespace

void Assembler::run() {
  idle_since_ = now_ns();
  std::uint64_t next = ring_.first();
  BatchSet sent = run_.earlier;
  while (next < ring_.end() || (ring_.copied() && sent.first() < ring_.end())) {
    try {
      switch (ring_.next_turn(next, sent.first())) {
        case Ring::Turn::kStop: return;
        case Ring::Turn::kBegin: begin_counted(next); break;
        case Ring::Turn::kCopy: {
          const std::uint64_t written = *ring_.written(sent.first());
          sent.add(written);
          send(written);
          idle_since_ = now_ns();
          continue;
        }
      }
    } catch (const std::exception& error) {
      // The device of the next batch's slot: its events cannot be asked, or its stream takes no work.
      if (next >= ring_.end()) throw;
      give_up(next, Failure::of_batch(error));
      idle_since_ = now_ns();
    }
    next = run_.earlier.after(next);
  }
}

void Assembler::begin_counted(std::uint64_t sequence) {
  const std::uint64_t began = now_ns();
  if (feed_ != nullptr && !end_is_known_) note_end();
  begin(sequence);
  const std::uint64_t end = now_ns();
  const auto examples = static_cast<std::uint64_t>(run_.schedule.position(sequence).global_examples);
  state_.waits.add(began - idle_since_);
  state_.stages.front().add(examples, end - began);
  if (state_.trace != nullptr) {
    state_.trace->add(
        {.name = "assemble", .begin_ns = began, .end_ns = end, .batch = sequence, .items = examples});
  }
  idle_since_ = end;
}

// Notes the end of a stream's first epoch: the last batches of all are known from here on.
void Assembler::note_end() {
  const std::optional<std::uint64_t> records = feed_->records();
  if (!records) return;
  run_.schedule.end_at(*records);
  end_is_known_ = true;
}

void Assembler::begin(std::uint64_t sequence) {
  Slot& slot = ring_.begin(sequence);
  const BatchPosition position = run_.schedule.position(sequence);
  if (replays(sequence)) {
    slot.replay(position);
    return ring_.complete(slot);
  }
  slot.begin(position);
  slot.numbers.resize(slot.records.size() * run_.plan.numbers);
  run_.schedule.locate(slot.position, slot.records, slot.passes, slot.numbers);
  if (run_.is_part() && !run_.mixers.empty()) add_guests(slot);
  if (feed_ != nullptr) feed_->take(slot);
  if (transfer_.holds(slot)) {
    transfer_.restore(slot);
    slot.draw_windows(run_.options.seed);
    return ring_.complete(slot);
  }
  // If the system refused oneTBB a thread, calls to oneTBB may never return.
  const bool for_readers = is_for_readers();
  run_user_code(state_, [&] {
    if (for_readers) remote_reads_.announce(slot);
    compute_.offer(sequence, for_readers);
  });
}

void Assembler::add_guests(Slot& slot) {
  const BatchPosition& at = slot.position;
  const auto own = static_cast<std::int64_t>(slot.records.size());
  slot.mixing_part.select(run_.mixers, {.seed = run_.options.seed, .epoch = at.epoch, .step = at.step},
                          at.global_examples, at.first_row, own);
  slot.add_guests();
  const std::size_t numbers = run_.plan.numbers;
  slot.numbers.resize(slot.records.size() * numbers);
  auto number = static_cast<std::size_t>(own);
  for (const std::int64_t guest : slot.mixing_part.guests()) {
    const Located located =
        run_.schedule.locate(at, guest, std::span(slot.numbers).subspan(number * numbers, numbers));
    slot.records[number] = located.record;
    slot.passes[number++] = located.pass;
  }
}

// Nothing is made of the batch: those who ask for it are told why, after the batches before it.
void Assembler::give_up(std::uint64_t sequence, Failure failure) {
  const bool has_begun = ring_.slot_of(sequence).mark.is(sequence, SlotState::kWriting);
  Slot& slot = has_begun ? ring_.slot_of(sequence) : ring_.begin(sequence);
  slot.begin_failed(run_.schedule.position(sequence), std::move(failure));
  ring_.complete(slot);
}

// Every slot has been written once before its bytes are handed out again.
bool Assembler::replays(std::uint64_t sequence) const noexcept {
  const std::uint64_t after = run_.options.headspace;
  return after > 0 && sequence >= run_.earlier.end() + std::max<std::uint64_t>(after, ring_.size());
}

// Returns whether readers, if any, fetch the records, since reading may wait for a file. Small samples in a warm
// cache are excluded: handing one over would take longer than reading it.
bool Assembler::is_for_readers() const {
  if (!readers_) return false;
  const bool waits = run_.program.cache_may_wait() && run_.layout.sample_bytes >= kWorthAReader;
  return !run_.program.is_warm() || waits;
}

void Assembler::send(std::uint64_t sequence) {
  Slot& slot = ring_.slot_of(sequence);
  slot.mark.move_to(SlotState::kCopying);
  transfer_.send(slot);
  ring_.make_ready(slot);
}

RemoteReads::RemoteReads(RunPlan& run, MemoryBudget& budget) : run_(run), charged_(budget) {
  if (!run.reads_network()) return;
  const std::uint64_t limit = budget.limit(), used = budget.used();
  const std::uint64_t bytes =
      limit == 0 ? kMaxWindow : std::min(kMaxWindow, limit > used ? (limit - used) / 2 : 0);
  charged_.hold(bytes, "records fetched ahead over the network");
  window_.emplace(bytes);
}

void RemoteReads::announce(const Slot& slot) {
  if (!window_) return;
  const std::uint64_t sequence = slot.position.sequence;
  if (next_ <= sequence) {
    announce_records(std::span(slot.records).first(static_cast<std::size_t>(slot.rows_to_write())));
    next_ = sequence + 1;
  }
  const std::uint64_t batches = kRecordsAhead / std::max<std::uint64_t>(1, slot.records.size());
  for (const std::uint64_t end = run_.schedule.batches(); next_ < end && next_ <= sequence + batches; ++next_) {
    if (!run_.earlier.contains(next_)) announce_batch(next_);
  }
}

void RemoteReads::announce_batch(std::uint64_t sequence) {
  BatchPosition position = run_.schedule.position(sequence);
  position.first_row = run_.layout.examples_before(position.global_examples);
  records_.resize(
      static_cast<std::size_t>(run_.layout.first_of(position.global_examples, run_.layout.local_replicas)));
  passes_.resize(records_.size());
  run_.schedule.locate(position, records_, passes_, {});
  announce_records(records_);
}

void RemoteReads::announce_records(std::span<const std::uint64_t> records) {
  uncached_.clear();
  for (const std::uint64_t record : records) {
    const auto holds = [record](const PlannedCache& one) { return one.cache->holds(record); };
    if (std::ranges::none_of(run_.plan.caches, holds)) uncached_.push_back(record);
  }
  if (!uncached_.empty()) run_.source().will_read(uncached_);
}

void RemoteReads::forget() const noexcept {
  if (!window_) return;
  try {
    run_.source().will_read({});
  } catch (const std::exception&) {  // then its memory is kept as long as the source
  }
}

}  // namespace headrace
