// The compute threads, which write rows, and the readers, which fetch records for them.
#include <algorithm>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/engine/stream_engine.h"
#include "headrace/pipeline/operations/pairing.h"
#include "headrace/pipeline/plan/scan/patient_read.h"

namespace headrace {
namespace {

// Charges what the buffers grew by; where that does not fit they are freed again.
void charge(ChargedBytes& charged, Scratch& scratch) {
  if (scratch.bytes() == charged.bytes()) return;
  try {
    charged.hold(scratch.bytes(), "a compute thread's working memory");
  } catch (const Error&) {
    scratch.free_buffers();
    charged.hold(scratch.bytes(), "");
    throw;
  }
}

void charge(FetchedRecord& fetch) {
  try {
    fetch.charged.hold(fetch.scratch.capacity(), "a record read ahead");
  } catch (const Error&) {
    std::vector<std::byte>().swap(fetch.scratch);
    fetch.charged.hold(0, "");
    throw;
  }
}

}  // namespace

// Runs something for one row; what it throws becomes the batch's failure.
template <typename Run>
void StreamEngine::guard(Slot& slot, std::int64_t row, Run run) {
  const auto fail = [&](const std::exception& error) {
    fail_row(slot, Failure::of_record(*plan_.source, slot.records[static_cast<std::size_t>(row)], row, error));
  };
  try {
    run();
  } catch (const Abandoned&) {
    throw;
  } catch (const std::exception& error) {
    fail(error);
  } catch (...) {
    fail(UnnamedException());
  }
}

// A record's cached sample, empty where there is none; what a filter could not judge is not looked for.
std::span<const std::byte> StreamEngine::find_cached(std::uint64_t record, std::vector<std::byte>& scratch) const {
  unjudged_.check(record);
  return program_.find_cached(record, scratch);
}

// After find_cached().
RecordView StreamEngine::read_record(std::uint64_t record, std::vector<std::byte>& scratch,
                                     ThreadState& state) const {
  const auto may_ask_again = [&] {
    if (stopped_.load(std::memory_order_relaxed)) return false;
    state.retries.fetch_add(1, std::memory_order_relaxed);
    return true;
  };
  return read_patiently([&] { return read_once(record, scratch, state); }, may_ask_again);
}

RecordView StreamEngine::read_once(std::uint64_t record, std::vector<std::byte>& scratch,
                                   ThreadState& state) const {
  const Source& source = *plan_.source;
  if (source.info().resident) return source.read(record, scratch);
  const std::uint64_t begin = now_ns();
  state.begin(kReading, record);
  RecordView view;
  call_foreign(state, [&] { view = source.read(record, scratch); });
  state.idle();
  state.reading.add(1, now_ns() - begin);
  return view;
}

void StreamEngine::compute(ThreadState& state, int number) {
  Scratch scratch;
  ChargedBytes charged(memory_budget_);
  scratch.samples.resize(program_.stages().size());
  Work work;
  std::uint64_t idle_since = now_ns();
  while (board_->next_work(work, number)) {
    const std::uint64_t begin = now_ns();
    if (!work.parked) state.waits.add(begin - idle_since);
    idle_since = run_work(work, begin, state, scratch, charged);
    state.idle();
  }
}

// Begun at `begin`; counts what it took and returns when it ended. The slot may belong to another batch by then.
std::uint64_t StreamEngine::run_work(const Work& work, std::uint64_t begin, ThreadState& state, Scratch& scratch,
                                     ChargedBytes& charged) {
  const Slot& slot = work.fetched != nullptr ? *work.fetched->slot : *work.slot;
  const std::uint64_t batch = slot.position.sequence;
  const std::uint64_t reading = state.reading.ns();
  const std::size_t mixer = program_.stages().size() + slot.mixing - 1;
  std::uint64_t items = 1;
  std::fill(scratch.samples.begin(), scratch.samples.end(), StageSample{});
  scratch.stamp_ns = begin;
  switch (work.kind) {
    case WorkKind::kFetched: run_fetched(*work.fetched, state, scratch, charged); break;
    case WorkKind::kRows:
      items = static_cast<std::uint64_t>(work.count);
      run_rows(work, state, scratch, charged);
      break;
    case WorkKind::kPairs:
      items = 2 * static_cast<std::uint64_t>(work.count);
      run_pairs(work, state);
      break;
  }
  const std::uint64_t end = now_ns();
  const bool mixed = work.kind == WorkKind::kPairs;
  if (mixed) {
    state.stages[mixer].add(items, end - begin);
  } else {
    count(state, scratch, items, end - begin - (state.reading.ns() - reading));
  }
  if (state.trace != nullptr) {
    state.trace->add(
        {.name = mixed ? "mix" : "rows", .begin_ns = begin, .end_ns = end, .batch = batch, .items = items});
  }
  return end;
}

// Divides the time of a block of rows among the stages in the proportions of the row that was timed. So handing
// the work over counts as everybody's: there a thread loses its core to those that it wakes.
void StreamEngine::count(ThreadState& state, const Scratch& scratch, std::uint64_t rows, std::uint64_t ns) {
  std::uint64_t row_ns = 0;
  for (const StageSample& sample : scratch.samples) row_ns += sample.ns;
  const double scale = row_ns > 0 ? static_cast<double>(ns) / static_cast<double>(row_ns) : 0;
  const std::size_t last = scratch.samples.size() - 1;
  std::uint64_t left = ns;
  for (std::size_t i = 0; i < last; ++i) {
    if (scratch.samples[i].items == 0) continue;
    const auto share = static_cast<std::uint64_t>(static_cast<double>(scratch.samples[i].ns) * scale);
    state.stages[i].add(rows, std::min(left, share));
    left -= std::min(left, share);
  }
  state.stages[last].add(rows, left);
}

// Small samples come from all over memory, and so does what a cache knows of each: both are on their way while
// others are worked on. `records` come after this one; where the next one's sample lies.
std::span<const std::byte> StreamEngine::look_ahead(std::span<const std::uint64_t> records) const noexcept {
  constexpr std::size_t kExpected = 4;
  if (records.empty()) return {};
  if (plan_.cache == nullptr) return plan_.source->peek(records.front());
  if (records.size() > kExpected) plan_.cache->expect(records[kExpected]);
  return plan_.cache->peek(records.front());
}

void StreamEngine::run_rows(const Work& work, ThreadState& state, Scratch& scratch, ChargedBytes& charged) {
  Slot& slot = *work.slot;
  const std::int64_t end = work.first + work.count;
  const std::int64_t timed = work.first + work.count / 2;  // the first row finds cold caches
  StepContext context{.seed = options_.seed,
                      .scratch = &scratch,
                      .probe = &state,
                      .trace = state.trace,
                      .batch = slot.position.sequence,
                      .stores = stores_};
  for (int r = 0; r < layout_.replicas; ++r) {
    const SlotShare& share = slot.shares[static_cast<std::size_t>(r)];
    const std::int64_t first = std::max(work.first, share.first);
    const std::int64_t share_end = std::min(end, share.first + share.rows);
    if (first >= share_end) continue;
    const auto records =
        std::span<const std::uint64_t>(slot.records)
            .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(share_end - first));
    if (copier_) {
      copier_->copy(records, slot.rows(r, first - share.first));
      continue;
    }
    for (std::int64_t row = first; row < share_end; ++row) {
      context.ahead = look_ahead(records.subspan(static_cast<std::size_t>(row + 1 - first)));
      context.samples = row == timed ? scratch.samples.data() : nullptr;
      guard(slot, row, [&] {
        context.record = slot.records[static_cast<std::size_t>(row)];
        context.pass = slot.passes[static_cast<std::size_t>(row)];
        const SampleProgram::Rows rows = slot.rows(r, row - share.first);
        const std::span<const std::byte> cached = find_cached(context.record, scratch.read);
        const RecordView view = cached.empty() ? read_record(context.record, scratch.read, state) : RecordView{};
        if (row == timed) scratch.stamp_ns = now_ns();   // finding and reading are no steps
        if (!scratch.notes.empty()) scratch.notes = {};  // of a row that failed
        if (cached.empty()) {
          program_.run_record(view, context, rows);
        } else {
          program_.run_cached(cached, context, rows);
        }
        if (!scratch.notes.empty()) take_notes(slot, row, scratch.notes);
      });
      if (row == timed) scratch.samples.back().ns = now_ns() - scratch.stamp_ns;
    }
  }
  finish(stores_);
  guard(slot, work.first, [&] { charge(charged, scratch); });
  wrote(slot, work.count, state);
}

void StreamEngine::run_fetched(FetchedRecord& fetched, ThreadState& state, Scratch& scratch,
                               ChargedBytes& charged) {
  Slot& slot = *fetched.slot;
  const auto row = static_cast<std::size_t>(fetched.row);
  guard(slot, fetched.row, [&] {
    const StepContext context{.seed = options_.seed,
                              .pass = slot.passes[row],
                              .record = slot.records[row],
                              .scratch = &scratch,
                              .probe = &state,
                              .samples = scratch.samples.data(),
                              .trace = state.trace,
                              .batch = slot.position.sequence,
                              .stores = stores_};
    const SampleProgram::Rows rows = slot.rows_of(fetched.row);
    if (!scratch.notes.empty()) scratch.notes = {};  // of a row that failed
    if (fetched.cached.empty()) {
      program_.run_record(fetched.view, context, rows);
    } else {
      program_.run_cached(fetched.cached, context, rows);
    }
    if (!scratch.notes.empty()) take_notes(slot, fetched.row, scratch.notes);
  });
  scratch.samples.back().ns = now_ns() - scratch.stamp_ns;
  finish(stores_);
  guard(slot, fetched.row, [&] { charge(charged, scratch); });
  board_->recycle(&fetched);
  wrote(slot, 1, state);
}

void StreamEngine::read(ThreadState& state, int number) {
  FetchedRecord* fetch = nullptr;
  std::uint64_t idle_since = now_ns();
  while (board_->next_read(fetch, number)) {
    const std::uint64_t begin = now_ns();
    state.waits.add(begin - idle_since);
    Slot& slot = *fetch->slot;
    const std::uint64_t batch = slot.position.sequence;
    const std::uint64_t record = slot.records[static_cast<std::size_t>(fetch->row)];
    bool found = false;
    guard(slot, fetch->row, [&] {
      fetch->cached = find_cached(record, fetch->scratch);
      if (fetch->cached.empty()) fetch->view = read_record(record, fetch->scratch, state);
      charge(*fetch);
      found = true;
    });
    state.idle();
    idle_since = now_ns();
    if (state.trace != nullptr) {
      state.trace->add({.name = "read", .begin_ns = begin, .end_ns = idle_since, .batch = batch, .items = 1});
    }
    if (found) {
      board_->fetched(fetch);
    } else {
      board_->recycle(fetch);
      wrote(slot, 1, state);
    }
  }
}

void StreamEngine::run_pairs(const Work& work, ThreadState& state) {
  Slot& slot = *work.slot;
  const Mixer& mixer = mixers_[slot.mixing - 1];
  const BatchKey key{.seed = options_.seed, .epoch = slot.position.epoch, .step = slot.position.step};
  const Pairing pairing(key, mixer.number(), slot.position.global_examples);
  for (std::int64_t i = work.first; i < work.first + work.count; ++i) {
    const Pair pair = pairing[i];
    mixer.mix(slot.rows_of(pair.first), slot.rows_of(pair.second), pairing.random(i));
  }
  wrote(slot, work.count, state);
}

// Begins the next batch-level operation; false where none is left. A batch that failed is not mixed: its error is
// all that anyone sees of it.
bool StreamEngine::mix_next(Slot& slot) {
  const std::int64_t pairs = Pairing::pairs_of(slot.position.global_examples);
  if (slot.mixing == mixers_.size() || slot.failure || pairs == 0) return false;
  ++slot.mixing;
  slot.pending.store(pairs);
  board_->publish_pairs(slot, pairs);
  return true;
}

// `count` of what was pending is done. The thread that does the last of it sees all that the others wrote.
void StreamEngine::wrote(Slot& slot, std::int64_t count, ThreadState& state) {
  if (slot.pending.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  if (slot.mixing == 0) settle(slot, state);
  if (mix_next(slot)) return;
  if (!copies()) return make_ready(slot);
  if (!slot.failure) slot.draw_windows(options_.seed);
  {
    const std::lock_guard lock(mutex_);
    slot.assembled = true;
  }
  assembler_.notify_one();
}

void StreamEngine::make_ready(Slot& slot) {
  if (first_batch_ns_.load(std::memory_order_relaxed) == 0) first_batch_ns_.store(now_ns() - start_ns_);
  {
    const std::lock_guard lock(mutex_);
    slot.ready.store(slot.position.sequence + 1, std::memory_order_release);
  }
  ready_.notify_all();
}

}  // namespace headrace
