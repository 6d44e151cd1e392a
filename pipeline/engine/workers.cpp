// The compute threads, which write rows, and the readers, which fetch records for them.
#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/engine/stream_engine.h"
#include "headrace/pipeline/stages/pairing.h"

namespace headrace {
namespace {

const std::string kReading = "source read";

void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

}  // namespace

// Runs something for one row; what it throws becomes the batch's failure.
template <typename Run>
void StreamEngine::guard(Slot& slot, std::int64_t row, Run run) {
  try {
    run();
  } catch (const std::exception& error) {
    slot.fail(Failure::of_record(*plan_.source, slot.records[static_cast<std::size_t>(row)], row, error));
  }
}

RecordView StreamEngine::read_record(std::uint64_t record, std::vector<std::byte>& scratch,
                                     ThreadState& state) const {
  const Source& source = *plan_.source;
  try {
    if (source.info().resident) return source.read(record, scratch);
    const Stopwatch watch;
    state.begin(kReading, record);
    state.enter_foreign();
    RecordView view;
    try {
      view = source.read(record, scratch);
    } catch (const std::exception&) {
      state.leave_foreign();
      throw;
    }
    state.leave_foreign();
    state.idle();
    add(state.read_ns, watch.nanoseconds());
    return view;
  } catch (const DataError&) {
    throw;  // says where by itself
  } catch (const std::exception& error) {
    throw name_step(kReading, error);
  }
}

void StreamEngine::compute(ThreadState& state) {
  Scratch scratch;
  Work work;
  while (board_->next_work(work)) {
    const std::uint64_t begin = now_ns();
    scratch.decode_ns = 0;
    const std::uint64_t read_before = state.read_ns.load(std::memory_order_relaxed);
    switch (work.kind) {
      case WorkKind::kFetched: run_fetched(*work.fetched, state, scratch); break;
      case WorkKind::kRows: run_rows(work, state, scratch); break;
      case WorkKind::kPairs: run_pairs(work); break;
    }
    const std::uint64_t reading = state.read_ns.load(std::memory_order_relaxed) - read_before;
    add(state.decode_ns, scratch.decode_ns);
    add(state.operate_ns, now_ns() - begin - scratch.decode_ns - reading);
    state.idle();
  }
}

void StreamEngine::run_rows(const Work& work, ThreadState& state, Scratch& scratch) {
  Slot& slot = *work.slot;
  const std::int64_t end = work.first + work.count;
  StepContext context{.seed = options_.seed, .scratch = &scratch, .probe = &state};
  for (int r = 0; r < layout_.replicas; ++r) {
    const SlotShare& share = slot.shares[static_cast<std::size_t>(r)];
    const std::int64_t share_end = std::min(end, share.first + share.rows);
    for (std::int64_t row = std::max(work.first, share.first); row < share_end; ++row) {
      guard(slot, row, [&] {
        context.record = slot.records[static_cast<std::size_t>(row)];
        context.pass = slot.passes[static_cast<std::size_t>(row)];
        const Program::Rows rows = slot.rows(r, row - share.first);
        const std::span<const std::byte> cached = program_.find_cached(context.record, scratch.read);
        if (!cached.empty()) return program_.run_cached(cached, context, rows);
        program_.run_record(read_record(context.record, scratch.read, state), context, rows);
      });
    }
  }
  wrote(slot, work.count);
}

void StreamEngine::run_fetched(FetchedRecord& fetched, ThreadState& state, Scratch& scratch) {
  Slot& slot = *fetched.slot;
  const auto row = static_cast<std::size_t>(fetched.row);
  guard(slot, fetched.row, [&] {
    const StepContext context{.seed = options_.seed,
                              .pass = slot.passes[row],
                              .record = slot.records[row],
                              .scratch = &scratch,
                              .probe = &state};
    const Program::Rows rows = slot.rows_of(fetched.row);
    if (!fetched.cached.empty()) return program_.run_cached(fetched.cached, context, rows);
    program_.run_record(fetched.view, context, rows);
  });
  board_->recycle(&fetched);
  wrote(slot, 1);
}

void StreamEngine::read(ThreadState& state) {
  FetchedRecord* fetch = nullptr;
  while (board_->next_read(fetch)) {
    Slot& slot = *fetch->slot;
    const std::uint64_t record = slot.records[static_cast<std::size_t>(fetch->row)];
    bool found = false;
    guard(slot, fetch->row, [&] {
      fetch->cached = program_.find_cached(record, fetch->scratch);
      if (fetch->cached.empty()) fetch->view = read_record(record, fetch->scratch, state);
      found = true;
    });
    state.idle();
    if (found) {
      board_->fetched(fetch);
    } else {
      board_->recycle(fetch);
      wrote(slot, 1);
    }
  }
}

void StreamEngine::run_pairs(const Work& work) {
  Slot& slot = *work.slot;
  const Mixer& mixer = mixers_[slot.mixing - 1];
  const BatchKey key{.seed = options_.seed, .epoch = slot.position.epoch, .step = slot.position.step};
  const Pairing pairing(key, mixer.number(), slot.position.global_examples);
  for (std::int64_t i = work.first; i < work.first + work.count; ++i) {
    const Pair pair = pairing[i];
    mixer.mix(slot.rows_of(pair.first), slot.rows_of(pair.second), pairing.random(i));
  }
  wrote(slot, work.count);
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
void StreamEngine::wrote(Slot& slot, std::int64_t count) {
  if (slot.pending.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  if (mix_next(slot)) return;
  const bool copied = std::any_of(copy_streams_.begin(), copy_streams_.end(),
                                  [](const auto& stream) { return stream != nullptr; });
  if (!copied) return make_ready(slot);
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
