// The assembler thread: begins batches in slots that came back, and sends finished ones to their devices.
#include <chrono>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/engine/stream_engine.h"

namespace headrace {
namespace {

// How often a slot is looked at whose device does not say when it is done with it, or failed before it could.
constexpr std::chrono::microseconds kPoll{500};
constexpr std::size_t kWorthAReader = std::size_t{1} << 16;  // bytes of a sample
constexpr std::size_t kBlockBytes = std::size_t{1} << 16;
constexpr std::int64_t kMinBlock = 64, kMaxBlock = 1024;

// Small samples are worked on many at a time, those that take long one at a time.
std::int64_t rows_of_a_block(const SampleProgram& program, const BatchLayout& layout) {
  if (program.is_slow()) return 1;
  const auto fitting = static_cast<std::int64_t>(kBlockBytes / std::max<std::size_t>(1, layout.sample_bytes));
  return std::clamp(fitting, kMinBlock, kMaxBlock);
}

std::int64_t pairs_of_a_block(const BatchLayout& layout) {
  const auto fitting = static_cast<std::int64_t>(kBlockBytes / std::max<std::size_t>(1, layout.sample_bytes));
  return std::clamp<std::int64_t>(fitting, 1, kMaxBlock);
}

}  // namespace

bool StreamEngine::may_begin(std::uint64_t sequence) const {
  return sequence < schedule_.batches() && slot_of(sequence).held == 0 && is_passed(slot_of(sequence));
}

// In place: the consumers' streams have passed the batch. Copied: pinned memory is free once its copy is done, and
// the copy stream waits for the consumer's.
bool StreamEngine::is_passed(const Slot& slot) const {
  return std::all_of(slot.shares.begin(), slot.shares.end(), [&](const SlotShare& share) {
    if (copies(share)) return share.ready->ready();
    return !share.fenced || share.fence->ready();
  });
}

bool StreamEngine::may_copy(std::uint64_t sequence) const {
  const Slot& slot = slot_of(sequence);
  return slot.sequence == sequence && slot.assembled;
}

void StreamEngine::assemble() {
  const bool copying = copies();
  std::uint64_t idle_since = now_ns();
  std::uint64_t next = first_;
  std::uint64_t next_copy = first_;
  while (next < schedule_.batches() || (copying && next_copy < schedule_.batches())) {
    try {
      switch (next_turn(next, next_copy)) {
        case Turn::kStop: return;
        case Turn::kBegin: idle_since = begin_counted(next, idle_since); break;
        case Turn::kCopy:
          copy(next_copy++);
          idle_since = now_ns();
          continue;
      }
    } catch (const std::exception& error) {
      // The device of the next batch's slot: its events cannot be asked, or its stream takes no work.
      if (next == schedule_.batches()) throw;
      give_up(next, Failure::of_batch(error));
      idle_since = now_ns();
    }
    ++next;
  }
}

// What to do next; waits for it. Copies come first: what they send is older than what begins.
StreamEngine::Turn StreamEngine::next_turn(std::uint64_t next, std::uint64_t next_copy) {
  std::unique_lock lock(mutex_);
  for (;; wait_for_slot(lock, next)) {
    if (stopped_.load()) return Turn::kStop;
    if (copies() && may_copy(next_copy)) return Turn::kCopy;
    if (may_begin(next)) return Turn::kBegin;
  }
}

// A slot still held is given back by a call; one given back waits only for its device.
void StreamEngine::wait_for_slot(std::unique_lock<std::mutex>& lock, std::uint64_t sequence) {
  if (sequence >= schedule_.batches() || slot_of(sequence).held > 0) return assembler_.wait(lock);
  assembler_.wait_for(lock, kPoll);
}

// begin(), after a wait since `idle_since`; returns when it was done.
std::uint64_t StreamEngine::begin_counted(std::uint64_t sequence, std::uint64_t idle_since) {
  const std::uint64_t began = now_ns();
  begin(sequence);
  const std::uint64_t end = now_ns();
  const auto examples = static_cast<std::uint64_t>(schedule_.position(sequence).global_examples);
  assembling_->waits.add(began - idle_since);
  assembling_->stages.front().add(examples, end - began);
  if (assembling_->trace != nullptr) {
    assembling_->trace->add(
        {.name = "assemble", .begin_ns = began, .end_ns = end, .batch = sequence, .items = examples});
  }
  return end;
}

void StreamEngine::begin(std::uint64_t sequence) {
  Slot& slot = slot_of(sequence);
  for (std::size_t r = 0; r < slot.shares.size(); ++r) {
    if (copies(slot.shares[r]) && slot.shares[r].fenced) copy_streams_[r]->wait(*slot.shares[r].fence);
  }
  if (replays(sequence)) return replay(sequence);
  slot.begin(schedule_.position(sequence));
  schedule_.locate(slot.position, slot.records, slot.passes);
  if (resident_ && resident_->holds(slot.records)) return revive(sequence);
  slot.block_rows = rows_of_a_block(program_, layout_);
  slot.block_pairs = pairs_of_a_block(layout_);
  slot.pending.store(slot.position.global_examples);
  {
    const std::lock_guard lock(mutex_);
    slot.sequence = sequence;
    slot.assembled = false;
    slot.held = layout_.replicas;
  }
  board_->publish(sequence, fetched_by());
}

// Every slot has been written once before its bytes are handed out again.
bool StreamEngine::replays(std::uint64_t sequence) const noexcept {
  return options_.headspace > 0 && sequence - first_ >= std::max<std::uint64_t>(options_.headspace, slots_.size());
}

// The bytes a slot holds become another batch: only the copy is done again.
void StreamEngine::replay(std::uint64_t sequence) {
  Slot& slot = slot_of(sequence);
  slot.replay(schedule_.position(sequence));
  {
    const std::lock_guard lock(mutex_);
    slot.sequence = sequence;
    slot.held = layout_.replicas;
    slot.assembled = copies();
  }
  if (!copies()) make_ready(slot);
}

// Nothing is made of the batch: those who ask for it are told why.
void StreamEngine::give_up(std::uint64_t sequence, Failure failure) {
  Slot& slot = slot_of(sequence);
  slot.begin_failed(schedule_.position(sequence), std::move(failure));
  {
    const std::lock_guard lock(mutex_);
    slot.sequence = sequence;
    slot.held = layout_.replicas;
    slot.assembled = copies();  // its turn comes after the copies of the batches before it
  }
  if (!copies()) make_ready(slot);
}

// The devices have the batch's images: the host makes none.
void StreamEngine::revive(std::uint64_t sequence) {
  Slot& slot = slot_of(sequence);
  resident_->restore(slot);
  slot.draw_windows(options_.seed);
  const std::lock_guard lock(mutex_);
  slot.sequence = sequence;
  slot.assembled = true;
  slot.held = layout_.replicas;
}

// What may wait for a file is the readers', where there are any; but of small samples in a warm cache handing each
// one over would take longer than reading it.
FetchedBy StreamEngine::fetched_by() const {
  if (readers_.empty()) return FetchedBy::kComputeThread;
  const bool waits = program_.cache_may_wait() && layout_.sample_bytes >= kWorthAReader;
  return program_.is_warm() && !waits ? FetchedBy::kComputeThread : FetchedBy::kReader;
}

void StreamEngine::begin_copies(std::uint64_t sequence) {
  for (std::size_t r = 0; r < copy_streams_.size(); ++r) {
    if (copy_clocks_[r] != nullptr && copy_clocks_[r]->stamps(sequence)) copy_clocks_[r]->begin(*copy_streams_[r]);
  }
}

void StreamEngine::copy(std::uint64_t sequence) {
  Slot& slot = slot_of(sequence);
  if (slot.failure) return make_ready(slot);
  try {
    begin_copies(sequence);
    if (resident_) {
      resident_->keep(slot, copy_streams_);
      resident_records_.store(resident_->records(), std::memory_order_relaxed);
      slot.pick(*resident_);
    }
    for (std::size_t r = 0; r < slot.shares.size(); ++r) {
      SlotShare& share = slot.shares[r];
      if (!copies(share)) continue;
      copy_streams_[r]->copy(share.device.data(), share.host.data() + layout_.sent_from, share.device.size());
      if (conversion_) {
        conversion_->submit(static_cast<int>(r), *copy_streams_[r], share.device, share.results,
                            resident_ ? &*resident_ : nullptr);
      }
      copy_streams_[r]->record(*share.ready);
      CopyClock& clock = *copy_clocks_[r];
      if (clock.stamps(sequence)) clock.end(*copy_streams_[r], sequence, static_cast<std::uint64_t>(share.rows));
    }
  } catch (const std::exception& error) {
    slot.fail(Failure::of_batch(error));
  }
  make_ready(slot);
}

}  // namespace headrace
