#include "headrace/pipeline/engine/stream_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/sources/streams/shard_stream.h"

namespace headrace {
namespace {

// Batches that may wait for a slot in any case.
constexpr std::uint64_t kAhead = 2;
// Records between two marks where no window begins.
constexpr std::uint64_t kMarkEvery = 64;

const std::string kOpening = "opening the stream", kPulling = "pulling from the stream",
                  kClosing = "closing the stream", kPurpose = "a streamed record";

// Gives back what the record's buffer has beyond it: buffers that are used again would all grow to the largest
// record, and a window has many.
void trim(StreamedRecord& record) {
  constexpr std::size_t kSlack = std::size_t{64} << 10;
  const RecordView& view = record.view;
  const std::byte* const begin = record.bytes.data();
  std::size_t used = 0;
  for (std::size_t i = 0; i < kMaxFields; ++i) {
    const std::span<const std::byte> field = view.fields[i];
    if (!field.empty()) used = std::max(used, static_cast<std::size_t>(field.data() + field.size() - begin));
  }
  if (used > record.bytes.size() || record.bytes.capacity() <= used + used / 4 + kSlack) return;
  std::vector<std::byte> exact(begin, begin + used);
  for (std::size_t i = 0; i < kMaxFields; ++i) {
    const std::span<const std::byte> field = view.fields[i];
    if (!field.empty()) record.view.fields[i] = {exact.data() + (field.data() - begin), field.size()};
  }
  record.bytes.swap(exact);
}

// While the batches of one window are taken, the next one arrives.
std::uint64_t batches_ahead(const StreamPlan& plan) {
  if (!plan.shards) return kAhead;
  return kAhead + plan.shards->options.window / static_cast<std::uint64_t>(plan.batch->global_batch);
}

}  // namespace

// An epoch of the stream, or a part of one.
class StreamFeed::Pulled {
 public:
  Pulled(std::unique_ptr<RecordStream> stream, std::uint64_t record)
      : stream_(std::move(stream)), record_(record) {}
  explicit Pulled(std::unique_ptr<PlacedStream> placed) : numbered_(placed.get()), stream_(std::move(placed)) {}
  explicit Pulled(std::unique_ptr<ShardStream> shards)
      : shards_(shards.get()), numbered_(shards_), stream_(std::move(shards)) {}

  std::optional<RecordView> next(std::vector<std::byte>& buffer) {
    ++record_;
    return stream_->next(buffer);
  }
  // Returns the number of the latest record.
  std::uint64_t number() const noexcept { return numbered_ != nullptr ? numbered_->number() : record_ - 1; }
  ShardStream* shards() const noexcept { return shards_; }

 private:
  ShardStream* shards_ = nullptr;             // null: it is none
  const NumberedStream* numbered_ = nullptr;  // null: its records are numbered from 0 on
  std::unique_ptr<RecordStream> stream_;
  std::uint64_t record_ = 0;
};

StreamFeed::StreamFeed(const RunPlan& run, Ring& ring, MemoryBudget& budget)
    : run_(run),
      ring_(ring),
      ahead_(batches_ahead(run.plan)),
      schedule_(run.plan, run.options.seed, run.options.epochs, {}),
      taken_(run.first),
      allowed_(run.first),
      charged_(budget),
      budget_(budget) {
  const LoaderState from = run.options.start.value_or(LoaderState{});
  if (from.records > 0) {
    records_ = from.records;
    schedule_.end_at(from.records);
  }
  if (run.first < ring.end()) start_ = place_of(run.first);
  if (!from.mark.empty()) {
    const std::optional<StreamMark> mark = parse_stream_mark(from.mark);
    const bool fits = mark && mark->at <= start_ && mark->at.epoch == start_.epoch;
    if (run.source().sharded() == nullptr || !fits) refuse_start();
    marks_.push_back(*mark);
    if (!mark->steps.empty()) place_window(*mark);
  }
  waiting_.push_back({.epoch = start_.epoch, .first = start_.record});
  ring_.allow(allowed_);
}

void StreamFeed::place_window(const StreamMark& mark) {
  if (!run_.plan.shards) refuse_start();
  placed_ = place(*run_.source().sharded(), run_.plan.shard_order(run_.options.seed), mark.at.epoch, mark.text,
                  mark.steps);
  const std::uint64_t end = mark.at.record + placed_->records.size();
  if (records_ || run_.plan.shards->windows.begins(end)) return;
  // Only the last window of an epoch is cut off.
  records_ = end;
  schedule_.end_at(end);
  start_ = place_of(run_.first);
}

void StreamFeed::refuse_start() {
  throw ConfigError("the loader state names a place that its batches do not have in this stream",
                    "start again, or restore the state as it was saved");
}

StreamPlace StreamFeed::place_of(std::uint64_t sequence) const {
  return {.epoch = schedule_.epoch_of(sequence), .record = schedule_.first_record(sequence)};
}

void StreamFeed::run(ThreadState& state) {
  std::unique_ptr<Pulled> stream;
  try {
    pull_all(stream, state);
  } catch (const Abandoned&) {
    throw;
  } catch (const std::exception& error) {
    break_at(error);
  } catch (...) {
    break_at(UnnamedException());
  }
  // It may wait for what it still fetches.
  state.begin(kClosing, 0);
  run_user_code(state, [&] { stream.reset(); });
  state.idle();
}

// At first up to where the run starts.
void StreamFeed::pull_all(std::unique_ptr<Pulled>& stream, ThreadState& state) {
  if (run_.first >= ring_.end()) return;
  const bool shards = run_.source().sharded() != nullptr;
  StreamMark from{.at = shards ? StreamPlace{.epoch = start_.epoch} : start_, .text = {}};
  if (!marks_.empty()) from = marks_.front();
  if (placed_) {
    std::optional<StreamMark> after = fill_window(from.at, stream, state);
    if (!after) return;
    from = *std::move(after);
  }
  for (StreamPlace at = from.at;; from = {.at = at, .text = {}}) {
    open(at.record, stream, state, [&] { return open_at(from); });
    if (at.epoch == start_.epoch && at.record < start_.record)
      at.record += skip(*stream, start_.record - at.record, state);
    bool at_end = false;
    while (!is_whole(at.epoch)) {
      if (!wait_for_room()) return;
      note_mark(*stream, at);
      std::optional<StreamedRecord> record = pull(*stream, at.record, state);
      at_end = !record;
      if (at_end) break;
      add(*std::move(record), *stream);
      ++at.record;
    }
    if (!end_epoch(at.record, at_end)) return;
    at = {.epoch = at.epoch + 1};
  }
}

template <typename Open>
void StreamFeed::open(std::uint64_t record, std::unique_ptr<Pulled>& stream, ThreadState& state,
                      const Open& opened) const {
  state.begin(kOpening, record);
  run_user_code(state, [&] {
    stream.reset();
    stream = opened();
  });
  state.idle();
}

// Whoever waits for a network may outlive the engine, and needs the source then.
ShardedSourcePtr StreamFeed::shards() const { return {run_.plan.source, run_.source().sharded()}; }

std::unique_ptr<StreamFeed::Pulled> StreamFeed::open_at(const StreamMark& from) const {
  if (run_.source().sharded() == nullptr)
    return std::make_unique<Pulled>(run_.source().open_stream(from.at.record), from.at.record);
  const ShardOrder order = run_.plan.shard_order(run_.options.seed);
  return std::make_unique<Pulled>(from.text.empty()
                                      ? std::make_unique<ShardStream>(shards(), order, from.at.epoch)
                                      : std::make_unique<ShardStream>(shards(), order, from.at.epoch, from.text));
}

// Returns the records before `end` that batches from the first one on need, in the order in which they need them,
// each once; and for each batch how many of these it has to wait for.
StreamFeed::Needed StreamFeed::needed_before(std::uint64_t end) {
  const std::uint64_t first = waiting_.back().first;
  Needed needed;
  std::vector<bool> is_needed(static_cast<std::size_t>(end - first));
  std::vector<std::uint64_t> records, passes;
  for (std::uint64_t batch = run_.first; batch < std::min(ring_.end(), schedule_.batches()); ++batch) {
    if (schedule_.epoch_of(batch) != start_.epoch || schedule_.first_record(batch) >= end) break;
    if (!run_.earlier.contains(batch)) {
      const BatchPosition position = schedule_.position(batch);
      records.resize(static_cast<std::size_t>(position.global_examples));
      passes.resize(records.size());
      schedule_.locate(position, records, passes, {});
      for (const std::uint64_t record : records) {
        if (record >= end || is_needed[static_cast<std::size_t>(record - first)]) continue;
        is_needed[static_cast<std::size_t>(record - first)] = true;
        needed.records.push_back(record);
      }
    }
    needed.of_batches.push_back(needed.records.size());
  }
  return needed;
}

// Reads what is left of the window that the run starts in where its records lie, instead of all that comes before
// them. Returns where the stream goes on after it; std::nullopt after stop().
std::optional<StreamMark> StreamFeed::fill_window(StreamPlace window, std::unique_ptr<Pulled>& stream,
                                                  ThreadState& state) {
  const std::uint64_t end = window.record + placed_->records.size();
  StreamMark after{.at = {.epoch = window.epoch, .record = end}, .text = std::move(placed_->mark)};
  if (start_.record >= end) return after;
  Needed needed;
  {
    const std::lock_guard lock(mutex_);
    waiting_.back().records.resize(static_cast<std::size_t>(end - waiting_.back().first));
    needed = needed_before(end);
  }
  std::vector<PlacedRecord> records;
  for (const std::uint64_t record : needed.records)
    records.push_back(placed_->records[static_cast<std::size_t>(record - window.record)]);
  placed_.reset();
  open(start_.record, stream, state,
       [&] { return std::make_unique<Pulled>(std::make_unique<PlacedStream>(shards(), std::move(records))); });
  allow_filled(needed, 0, end);
  for (std::size_t i = 0; i < needed.records.size(); ++i) {
    std::optional<StreamedRecord> record = pull(*stream, needed.records[i], state);
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return std::nullopt;
      charge(*record);
      Waiting& filled = waiting_.back();
      filled.records[static_cast<std::size_t>(needed.records[i] - filled.first)] = *std::move(record);
    }
    allow_filled(needed, i + 1, end);
  }
  return after;
}

// Lets batches begin of which so many of the records before `end` are there.
void StreamFeed::allow_filled(const Needed& needed, std::size_t there, std::uint64_t end) {
  std::uint64_t allowed = 0;
  {
    const std::lock_guard lock(mutex_);
    while (allowed_ < ring_.end() && allowed_ - run_.first < needed.of_batches.size() &&
           needed.of_batches[static_cast<std::size_t>(allowed_ - run_.first)] <= there && holds(end, allowed_)) {
      ++allowed_;
    }
    allowed = allowed_;
  }
  ring_.allow(allowed);
}

// Returns how many of `count` records were passed: fewer if the stream ended.
std::uint64_t StreamFeed::skip(Pulled& stream, std::uint64_t count, ThreadState& state) const {
  std::uint64_t passed = 0;
  std::vector<std::byte> buffer;
  state.begin(kOpening, 0);
  run_user_code(state, [&] {
    for (bool ended = false; !ended && passed < count && !ring_.stopped().load(); ++passed) {
      try {
        ended = !stream.next(buffer);
      } catch (const DataError&) {  // a bad record is one, too
      }
      if (ended) return;
    }
  });
  state.idle();
  return passed;
}

// The batches that had all of their records are the last ones.
void StreamFeed::break_at(const std::exception& cause) {
  Failure failure = Failure::of_record(run_.source(), number_, 0, cause);
  failure.what.operation = kPulling;
  ring_.end_at(allowed_, std::move(failure));
}

// Until another record is wanted; false where none will be.
bool StreamFeed::wait_for_room() {
  std::unique_lock lock(mutex_);
  const auto has_room = [&] {
    const std::uint64_t limit = budget_.limit();
    const bool has_memory = limit == 0 || budget_.used() < limit / 2;
    return allowed_ < taken_ + (has_memory ? ahead_ : kAhead);
  };
  room_.wait(lock, [&] { return stopped_ || has_room() || allowed_ >= ring_.end(); });
  return !stopped_ && allowed_ < ring_.end();
}

// Where a window begins, nothing before it is needed any more.
void StreamFeed::note_mark(const Pulled& stream, StreamPlace at) {
  if (stream.shards() == nullptr) return;
  const bool begins = run_.plan.shards ? run_.plan.shards->windows.begins(at.record) : at.record % kMarkEvery == 0;
  if (!begins) return;
  std::string text = stream.shards()->mark();
  stream.shards()->take_steps();  // which led here
  const std::lock_guard lock(mutex_);
  marks_.push_back({.at = at, .text = std::move(text)});
}

// Returns std::nullopt at the end of the stream.
std::optional<StreamedRecord> StreamFeed::pull(Pulled& stream, std::uint64_t record, ThreadState& state) {
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
    } catch (...) {
      number_ = stream.number();
      throw;
    }
  });
  next.number = number_ = stream.number();
  state.idle();
  const std::uint64_t end = now_ns();
  state.reading.add(1, end - begin);
  if (state.trace != nullptr) {
    state.trace->add({.name = "pull", .begin_ns = begin, .end_ns = end, .items = is_there ? 1U : 0U});
  }
  if (!is_there) return std::nullopt;
  if (next.error == nullptr) trim(next);
  return next;
}

void StreamFeed::add(StreamedRecord record, Pulled& stream) {
  std::uint64_t allowed = 0;
  {
    const std::lock_guard lock(mutex_);
    charge(record);
    if (run_.plan.shards) {
      const ShardSteps taken = stream.shards()->take_steps();
      marks_.back().steps.insert(marks_.back().steps.end(), taken.begin(), taken.end());
    }
    Waiting& pulled = waiting_.back();
    pulled.records.push_back(std::move(record));
    while (allowed_ < ring_.end() && schedule_.epoch_of(allowed_) == pulled.epoch &&
           holds(pulled.end(), allowed_)) {
      ++allowed_;
    }
    allowed = allowed_;
  }
  ring_.allow(allowed);
}

// Whether the records include all that the batch may need, and show that a batch of this run follows.
bool StreamFeed::holds(std::uint64_t records, std::uint64_t sequence) const {
  const std::uint64_t steps = schedule_.steps_per_epoch(), end = (sequence / steps + 1) * steps;
  return schedule_.holds(records, std::min(run_.earlier.after(sequence), end) - 1);
}

// Whether all batches of the epoch may begin.
bool StreamFeed::is_whole(std::uint64_t epoch) const {
  const std::lock_guard lock(mutex_);
  return allowed_ / schedule_.steps_per_epoch() > epoch;
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

// Ends the epoch after so many records; `at_end`: the stream has no other. Returns whether another epoch follows.
bool StreamFeed::end_epoch(std::uint64_t records, bool at_end) {
  std::unique_lock lock(mutex_);
  const std::uint64_t epoch = waiting_.back().epoch;
  if (!records_) {
    records_ = at_end ? records : kUnknownRecords;
    schedule_.end_at(*records_);
    start_ = place_of(run_.first);
  } else if (at_end && *records_ != records) {
    throw DataError(ErrorCode::kDataCorrupt,
                    fmt::format("its shards have {} records in this epoch, and had {}", records,
                                *records_ == kUnknownRecords ? "more" : std::to_string(*records_)),
                    {.source = run_.source().info().name}, "data must not change while they are read");
  }
  const std::uint64_t end = schedule_.batches();
  allowed_ = std::max(taken_, std::min((epoch + 1) * schedule_.steps_per_epoch(), end));
  const bool is_last = allowed_ >= end;
  if (!is_last) {
    waiting_.push_back({.epoch = epoch + 1, .first = epoch + 1 == start_.epoch ? start_.record : 0});
  }
  const std::uint64_t allowed = allowed_;
  lock.unlock();
  if (is_last) {
    ring_.end_at(allowed, std::nullopt);
  } else {
    ring_.allow(allowed, end);
  }
  return !is_last;
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

void StreamFeed::take(Slot& slot) {
  {
    const std::lock_guard lock(mutex_);
    for (StreamedRecord& had : slot.streamed) recycle(had);
    slot.streamed.resize(slot.records.size());
    Waiting& from = *std::ranges::find(waiting_, slot.position.epoch, &Waiting::epoch);
    for (std::size_t i = 0; i < slot.records.size(); ++i) {
      slot.streamed[i] = std::exchange(from.records[static_cast<std::size_t>(slot.records[i] - from.first)], {});
      slot.records[i] = slot.streamed[i].number;
    }
    taken_ = run_.earlier.after(slot.position.sequence);
    forget_before(place_of(taken_));
    const std::uint64_t sequence = slot.position.sequence;
    const StreamPlace oldest = place_of(std::max(run_.first, sequence - std::min(sequence, ring_.size())));
    while (marks_.size() > 1 && marks_[1].at <= oldest) marks_.pop_front();
  }
  room_.notify_one();
}

void StreamFeed::forget_before(StreamPlace next) {
  while (!waiting_.empty()) {
    Waiting& first = waiting_.front();
    const std::uint64_t kept = first.epoch < next.epoch ? first.end() : next.record;
    if (first.epoch > next.epoch) return;
    for (; first.first < kept && !first.records.empty(); ++first.first) {
      recycle(first.records.front());
      first.records.pop_front();
    }
    if (first.epoch == next.epoch || waiting_.size() == 1) return;
    waiting_.pop_front();
  }
}

// Depends on the batches that were handed out alone, not on what was pulled meanwhile.
void StreamFeed::save(LoaderState& state) const {
  const std::lock_guard lock(mutex_);
  const StreamPlace next = place_of(state.sequence);
  if (next.epoch > 0) state.records = records_.value_or(0);
  const auto after = std::ranges::upper_bound(marks_, next, {}, &StreamMark::at);
  if (next.record == 0 || after == marks_.begin()) return;
  const StreamMark& mark = *std::prev(after);
  if (mark.at.epoch != next.epoch) return;
  // All of a window was there once a batch took some of it.
  const bool has_begun = run_.plan.shards && schedule_.last_record(state.sequence - 1) >= mark.at.record;
  state.mark = mark.to_text(has_begun);
}

void StreamFeed::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  room_.notify_one();
}

}  // namespace headrace
