#include "headrace/pipeline/engine/stream_feed.h"

#include <utility>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

// Batches that may wait for a slot.
constexpr std::uint64_t kAhead = 2;

const std::string kOpening = "opening the stream", kPulling = "pulling from the stream",
                  kPurpose = "a streamed record";

}  // namespace

StreamFeed::StreamFeed(const RunPlan& run, Ring& ring, MemoryBudget& budget)
    : run_(run),
      ring_(ring),
      first_(run.first < run.schedule.batches() ? run.schedule.first_record(run.first) : 0),
      taken_(run.first),
      allowed_(run.first),
      charged_(budget) {
  ring_.allow(allowed_);
}

void StreamFeed::run(ThreadState& state) {
  std::uint64_t record = first_;
  try {
    std::unique_ptr<RecordStream> stream;
    state.begin(kOpening, record);
    run_user_code(state, [&] { stream = run_.source().open_stream(record); });
    state.idle();
    while (wait_for_room()) {
      if (!pull(*stream, record, state)) return end(record);
      ++record;
    }
  } catch (const Abandoned&) {
    throw;
  } catch (const std::exception& error) {
    break_at(record, error);
  } catch (...) {
    break_at(record, UnnamedException());
  }
  state.idle();
}

// The batches that had all of their records are the last ones.
void StreamFeed::break_at(std::uint64_t record, const std::exception& cause) {
  Failure failure = Failure::of_record(run_.source(), record, 0, cause);
  failure.what.operation = kPulling;
  ring_.end_at(allowed_, std::move(failure));
}

// Until another record is wanted; false where none will be.
bool StreamFeed::wait_for_room() {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return stopped_ || allowed_ < taken_ + kAhead || allowed_ >= ring_.end(); });
  return !stopped_ && allowed_ < ring_.end();
}

// False at the end of the stream.
bool StreamFeed::pull(RecordStream& stream, std::uint64_t record, ThreadState& state) {
  StreamedRecord next = new_record();
  bool is_there = true;
  const std::uint64_t begin = now_ns();
  state.begin(kPulling, record);
  run_user_code(state, [&] {
    try {
      const std::optional<RecordView> view = stream.next(next.bytes);
      is_there = view.has_value();
      if (view) next.view = *view;
    } catch (const DataError&) {
      next.error = std::current_exception();
    }
  });
  state.idle();
  const std::uint64_t end = now_ns();
  state.reading.add(1, end - begin);
  if (state.trace != nullptr) {
    state.trace->add({.name = "pull", .begin_ns = begin, .end_ns = end, .items = is_there ? 1U : 0U});
  }
  if (is_there) add(std::move(next));
  return is_there;
}

void StreamFeed::add(StreamedRecord record) {
  std::uint64_t allowed = 0;
  {
    const std::lock_guard lock(mutex_);
    charge(record);
    waiting_.push_back(std::move(record));
    const std::uint64_t records = first_ + waiting_.size();
    while (allowed_ < ring_.end() && holds(records, allowed_)) ++allowed_;
    allowed = allowed_;
  }
  ring_.allow(allowed);
}

// Whether the records include all that the batch may need, and show that a batch of this run follows.
bool StreamFeed::holds(std::uint64_t records, std::uint64_t sequence) const {
  return run_.schedule.holds(records, run_.earlier.after(sequence) - 1);
}

// A record that the budget has no room for fails its batch.
void StreamFeed::charge(StreamedRecord& record) {
  const std::size_t bytes = record.bytes.capacity();
  try {
    charged_.hold(charged_.bytes() + bytes, kPurpose);
  } catch (const Error&) {
    record.error = std::current_exception();
    std::vector<std::byte>().swap(record.bytes);
  }
}

void StreamFeed::end(std::uint64_t records) {
  {
    const std::lock_guard lock(mutex_);
    allowed_ = std::max(taken_, run_.schedule.batches_of(records));
    records_ = records;
  }
  ring_.end_at(allowed_, std::nullopt);
}

StreamedRecord StreamFeed::new_record() {
  StreamedRecord record;
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return record;
  record.bytes = std::move(free_.back());
  free_.pop_back();
  charged_.hold(charged_.bytes() - record.bytes.capacity(), {});  // charged again with what it grew to
  return record;
}

void StreamFeed::recycle(StreamedRecord& record) {
  if (record.bytes.capacity() > 0) free_.push_back(std::move(record.bytes));
  record = {};
}

std::optional<std::uint64_t> StreamFeed::records() const {
  const std::lock_guard lock(mutex_);
  return records_;
}

void StreamFeed::take(Slot& slot, std::uint64_t first_record) {
  {
    const std::lock_guard lock(mutex_);
    for (StreamedRecord& had : slot.streamed) recycle(had);
    slot.streamed.resize(slot.records.size());
    for (std::size_t i = 0; i < slot.records.size(); ++i) {
      slot.streamed[i] = std::exchange(waiting_[static_cast<std::size_t>(slot.records[i] - first_)], {});
    }
    for (; first_ < first_record && !waiting_.empty(); ++first_) {
      recycle(waiting_.front());
      waiting_.pop_front();
    }
    taken_ = run_.earlier.after(slot.position.sequence);
  }
  room_.notify_one();
}

void StreamFeed::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  room_.notify_one();
}

}  // namespace headrace
