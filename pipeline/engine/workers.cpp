// The compute threads, which write rows, and the readers, which fetch records for them.
#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/engine/stream_engine.h"

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
    if (work.fetched != nullptr) {
      run_fetched(*work.fetched, state, scratch);
    } else {
      run_rows(work, state, scratch);
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
        const std::span<const std::byte> cached = program_.find_cached(context.record);
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
  int replica = 0;
  while (fetched.row >= slot.shares[static_cast<std::size_t>(replica)].first +
                            slot.shares[static_cast<std::size_t>(replica)].rows) {
    ++replica;
  }
  guard(slot, fetched.row, [&] {
    const StepContext context{.seed = options_.seed,
                              .pass = slot.passes[row],
                              .record = slot.records[row],
                              .scratch = &scratch,
                              .probe = &state};
    const Program::Rows rows =
        slot.rows(replica, fetched.row - slot.shares[static_cast<std::size_t>(replica)].first);
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
      fetch->cached = program_.find_cached(record);
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

void StreamEngine::wrote(Slot& slot, std::int64_t examples) {
  if (slot.pending.fetch_sub(examples, std::memory_order_acq_rel) != examples) return;
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
