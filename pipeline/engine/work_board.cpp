#include "headrace/pipeline/engine/work_board.h"

#include <algorithm>

namespace headrace {

WorkBoard::WorkBoard(std::vector<std::unique_ptr<Slot>>& slots, std::uint64_t first_sequence, std::size_t fetches,
                     MemoryBudget& budget)
    : slots_(slots),
      fetches_(fetches),
      published_(first_sequence),
      oldest_(first_sequence),
      oldest_read_(first_sequence) {
  for (FetchedRecord& fetch : fetches_) {
    fetch.charged = ChargedBytes(budget);
    free_.push_back(&fetch);
  }
  full_.resize(fetches_.size());
  mixing_.reserve(slots_.size());
}

// All are woken with the mutex held: none of them is left in a queue where it could swallow the only notification
// meant for a thread that may take the work.
void WorkBoard::allow(int threads, int readers) {
  const std::lock_guard lock(mutex_);
  threads_ = threads;
  readers_ = readers;
  work_.notify_all();
  reads_.notify_all();
  parked_.notify_all();
}

void WorkBoard::publish(std::uint64_t sequence, FetchedBy fetched_by) {
  std::int64_t blocks = 0;
  {
    const std::lock_guard lock(mutex_);
    Slot& slot = *slots_[sequence % slots_.size()];
    const auto examples = static_cast<std::int64_t>(slot.records.size());
    const bool readers = fetched_by == FetchedBy::kReader;
    slot.row_count = examples;
    slot.next_row = readers ? examples : 0;
    slot.next_read = readers ? 0 : examples;
    published_ = sequence + 1;
    blocks = (slot.row_count - slot.next_row + slot.block_rows - 1) / slot.block_rows;
  }
  if (blocks == 1) {
    work_.notify_one();  // to wake a thread that finds nothing takes longer than a small batch
  } else if (blocks > 1) {
    work_.notify_all();
  }
  if (fetched_by == FetchedBy::kReader) reads_.notify_all();
}

void WorkBoard::publish_pairs(Slot& slot, std::int64_t pairs) {
  {
    const std::lock_guard lock(mutex_);
    slot.pair_count = pairs;
    slot.next_pair = 0;
    mixing_.push_back(&slot);
  }
  work_.notify_all();
}

bool WorkBoard::claim_pairs(Work& work) {
  if (mixing_.empty()) return false;
  Slot& slot = *mixing_.front();
  const std::int64_t count = std::min(slot.block_pairs, slot.pair_count - slot.next_pair);
  work = {.kind = WorkKind::kPairs, .slot = &slot, .first = slot.next_pair, .count = count};
  slot.next_pair += count;
  if (slot.next_pair == slot.pair_count) mixing_.erase(mixing_.begin());
  return true;
}

bool WorkBoard::claim(Work& work) {
  // A slot that was refilled before `oldest_` passed it is found early, which does no harm.
  for (; oldest_ < published_; ++oldest_) {
    Slot& slot = *slots_[oldest_ % slots_.size()];
    if (slot.next_row == slot.row_count) continue;
    const std::int64_t count = std::min(slot.block_rows, slot.row_count - slot.next_row);
    work = {.slot = &slot, .first = slot.next_row, .count = count};
    slot.next_row += work.count;
    return true;
  }
  return false;
}

bool WorkBoard::claim_read(FetchedRecord& fetch) {
  for (; oldest_read_ < published_; ++oldest_read_) {
    Slot& slot = *slots_[oldest_read_ % slots_.size()];
    if (slot.next_read == slot.row_count) continue;
    fetch.slot = &slot;
    fetch.row = slot.next_read++;
    return true;
  }
  return false;
}

bool WorkBoard::claim_fetched(Work& work) {
  if (full_count_ == 0) return false;
  work = {.kind = WorkKind::kFetched, .fetched = full_[full_first_]};
  full_first_ = (full_first_ + 1) % full_.size();
  --full_count_;
  return true;
}

bool WorkBoard::next_work(Work& work, int thread) {
  std::unique_lock lock(mutex_);
  bool parked = false;
  for (;;) {
    if (stopped_) return false;
    if (thread >= threads_) {
      parked = true;
      parked_.wait(lock);
      continue;
    }
    if (claim_pairs(work) || claim_fetched(work) || claim(work)) {  // the last of what a batch needs first
      work.parked = parked;
      return true;
    }
    work_.wait(lock);
  }
}

bool WorkBoard::next_read(FetchedRecord*& fetch, int reader) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopped_) return false;
    if (reader >= readers_) {
      parked_.wait(lock);
      continue;
    }
    if (!free_.empty() && claim_read(*free_.back())) {
      fetch = free_.back();
      free_.pop_back();
      return true;
    }
    reads_.wait(lock);
  }
}

void WorkBoard::fetched(FetchedRecord* fetch) {
  {
    const std::lock_guard lock(mutex_);
    full_[(full_first_ + full_count_) % full_.size()] = fetch;
    ++full_count_;
  }
  work_.notify_one();
}

void WorkBoard::recycle(FetchedRecord* fetch) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(fetch);
  }
  reads_.notify_one();
}

void WorkBoard::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  work_.notify_all();
  reads_.notify_all();
  parked_.notify_all();
}

}  // namespace headrace
