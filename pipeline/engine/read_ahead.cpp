#include "headrace/pipeline/engine/read_ahead.h"

namespace headrace {

ReadAhead::ReadAhead(Ring& ring, std::size_t buffers, MemoryBudget& budget)
    : ring_(ring), offered_(ring.first()), oldest_(ring.first()), records_(buffers), fetched_(buffers) {
  free_.reserve(buffers);
  for (FetchedRecord& record : records_) {
    record.charged = ChargedBytes(budget);
    free_.push_back(&record);
  }
}

void ReadAhead::offer(std::uint64_t sequence) {
  {
    const std::lock_guard lock(mutex_);
    Slot& slot = ring_.slot_of(sequence);
    slot.reads_left.offer(slot.rows_to_write());
    offered_ = sequence + 1;
  }
  reads_.notify_all();
}

void ReadAhead::allow(int readers) {
  const std::lock_guard lock(mutex_);
  readers_ = readers;
  reads_.notify_all();
  parked_.notify_all();
}

bool ReadAhead::claim(FetchedRecord& record) {
  for (; oldest_ < offered_; ++oldest_) {
    Slot& slot = ring_.slot_of(oldest_);
    const ClaimCounter::Range one = slot.reads_left.claim(1);
    if (one.count == 0) continue;
    record.slot = &slot;
    record.example = one.first;
    return true;
  }
  return false;
}

FetchedRecord* ReadAhead::next(int reader) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopped_) return nullptr;
    if (reader >= readers_) {
      parked_.wait(lock);
    } else if (!free_.empty() && claim(*free_.back())) {
      FetchedRecord* const record = free_.back();
      free_.pop_back();
      return record;
    } else {
      reads_.wait(lock);
    }
  }
}

void ReadAhead::put(FetchedRecord* record) {
  const std::lock_guard lock(mutex_);
  fetched_[(first_ + count_) % fetched_.size()] = record;
  ++count_;
}

FetchedRecord* ReadAhead::take() {
  const std::lock_guard lock(mutex_);
  if (count_ == 0) return nullptr;
  FetchedRecord* const record = fetched_[first_];
  first_ = (first_ + 1) % fetched_.size();
  --count_;
  return record;
}

bool ReadAhead::empty() const {
  const std::lock_guard lock(mutex_);
  return count_ == 0;
}

void ReadAhead::give_back(FetchedRecord* record) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(record);
  }
  reads_.notify_one();
}

void ReadAhead::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  reads_.notify_all();
  parked_.notify_all();
}

}  // namespace headrace
