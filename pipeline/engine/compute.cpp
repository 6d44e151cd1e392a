#include "headrace/pipeline/engine/compute.h"

#include <algorithm>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/engine/lanes.h"
#include "headrace/pipeline/operations/machinery/pairing.h"

namespace headrace {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 16;
constexpr std::int64_t kMinBlock = 64, kMaxBlock = 1024;

// Small samples are worked on many at a time, those that take long one at a time.
std::int64_t rows_of_a_block(const SampleProgram& program, const BatchLayout& layout) {
  if (program.is_slow()) return 1;
  const auto fitting = static_cast<std::int64_t>(kBlockBytes / std::max<std::size_t>(1, layout.sample_bytes));
  return std::clamp(fitting, kMinBlock, kMaxBlock);
}

// Returns whether so many rows of small samples are worth drawing for together.
bool draws_ahead(const SampleProgram& program, std::int64_t rows) {
  constexpr std::int64_t kWorthwhile = 4;
  return rows >= kWorthwhile && !program.random_operations().empty();
}

std::int64_t pairs_of_a_block(const BatchLayout& layout) {
  const auto fitting = static_cast<std::int64_t>(kBlockBytes / std::max<std::size_t>(1, layout.sample_bytes));
  return std::clamp<std::int64_t>(fitting, 1, kMaxBlock);
}

// Charges the growth of a source's buffers, and returns what decoding held temporarily; frees the buffers if they
// do not fit.
void charge_lane(Lane& lane) {
  try {
    lane.scratch.charge();
  } catch (const Error&) {
    lane.scratch.free_buffers();
    lane.scratch.charge();
    throw;
  }
}

// Divides the time of a block of rows among the stages in the proportions of the row that was timed. The time of
// handing work over, in which a thread may lose its core to those that it wakes, is divided with it.
void count_stages(Lane& lane, std::uint64_t rows, std::uint64_t ns) {
  const std::vector<StageSample>& samples = lane.scratch.samples;
  std::uint64_t row_ns = 0;
  for (const StageSample& sample : samples) row_ns += sample.ns;
  const double scale = row_ns > 0 ? static_cast<double>(ns) / static_cast<double>(row_ns) : 0;
  const std::size_t last = samples.size() - 1;
  std::uint64_t left = ns;
  for (std::size_t i = 0; i < last; ++i) {
    if (samples[i].items == 0) continue;
    const auto share = static_cast<std::uint64_t>(static_cast<double>(samples[i].ns) * scale);
    lane.state.stages[i].add(rows, std::min(left, share), rows * samples[i].decoded_bytes);
    left -= std::min(left, share);
  }
  lane.state.stages[last].add(rows, left);
}

std::shared_ptr<ComputeArena> arena_of(const RunPlan& run) {
  if (run.options.arena != nullptr) return run.options.arena;
  return make_own_arena(run.lanes, run.options.constraints);
}

}  // namespace

Compute::Compute(const RunPlan& run, Ring& ring, const RecordReader& reader, const RowErrors& errors,
                 ReadAhead& read_ahead, Stores stores, Budgets& budgets)
    : run_(run),
      ring_(ring),
      reader_(reader),
      errors_(errors),
      read_ahead_(read_ahead),
      stores_(stores),
      block_pairs_(pairs_of_a_block(run.layout)),
      offered_(ring.first()),
      oldest_(ring.first()),
      lanes_(arena_of(run), run.lanes, run.program.stages().size() + run.mixers.size(), *this, budgets.memory,
             ring.clock()) {
  for (const auto& lane : lanes_.lanes()) lane->scratch.samples.resize(run.program.stages().size());
}

void Compute::offer(std::uint64_t sequence, bool by_readers) {
  Slot& slot = ring_.slot_of(sequence);
  const std::int64_t rows = slot.rows_to_write();
  slot.pending.store(rows);
  if (rows == 0) {  // this part of a small batch is empty
    slot.compact();
    ring_.complete(slot);
    return;
  }
  if (by_readers) return read_ahead_.offer(sequence);
  const std::int64_t block = rows_of_a_block(run_.program, run_.layout);
  block_rows_.store(block, std::memory_order_relaxed);
  slot.rows_left.offer(rows);
  offered_.store(sequence + 1);
  if (run_.in_bursts && lanes_.run_here()) return;
  try {
    lanes_.wake((rows + block - 1) / block);
  } catch (const std::exception& error) {  // the batch is given out already: it cannot be taken back
    ring_.break_off(Failure::of_batch(error));
  }
}

bool Compute::has_work() const noexcept {
  if (mixing_.load() > 0 || !read_ahead_.empty()) return true;
  for (std::uint64_t sequence = oldest_.load(); sequence < offered_.load(); ++sequence) {
    if (!ring_.slot_of(sequence).rows_left.empty()) return true;
  }
  return false;
}

// Takes work from the last step of a batch first: pairs of rows, then fetched records, then rows.
bool Compute::claim(Work& work) {
  if (claim_pairs(work)) return true;
  if (FetchedRecord* const fetched = read_ahead_.take(); fetched != nullptr) {
    work = {.kind = WorkKind::kFetched, .fetched = fetched, .slot = fetched->slot};
    return true;
  }
  return claim_rows(work);
}

bool Compute::claim_pairs(Work& work) {
  if (mixing_.load() == 0) return false;
  for (const auto& slot : ring_.slots()) {
    const ClaimCounter::Range pairs = slot->pairs_left.claim(block_pairs_);
    if (pairs.count == 0) continue;
    if (pairs.is_last) mixing_.fetch_sub(1);
    work = {.kind = WorkKind::kPairs, .slot = slot.get(), .first = pairs.first, .count = pairs.count};
    return true;
  }
  return false;
}

// A slot that was filled again before oldest_ passed it is found early, which does no harm.
bool Compute::claim_rows(Work& work) {
  for (std::uint64_t sequence = oldest_.load(); sequence < offered_.load(); ++sequence) {
    Slot& slot = ring_.slot_of(sequence);
    const ClaimCounter::Range rows = slot.rows_left.claim(block_rows_.load(std::memory_order_relaxed));
    if (rows.count > 0) {
      work = {.slot = &slot, .first = rows.first, .count = rows.count};
      return true;
    }
    std::uint64_t expected = sequence;
    oldest_.compare_exchange_strong(expected, sequence + 1);
  }
  return false;
}

bool Compute::run_next(Lane& lane) {
  Work work;
  if (!claim(work)) return false;
  end_stream_on_error(ring_, lane.state, [&] { run_counted(work, lane); });
  lane.state.idle();
  return true;
}

// The slot may belong to another batch when the work is done.
void Compute::run_counted(const Work& work, Lane& lane) {
  const std::uint64_t begin = now_ns(), reading = lane.state.reading.ns();
  const std::uint64_t batch = work.slot->position.sequence;
  const std::size_t mixer = run_.program.stages().size() + work.slot->mixing - 1;
  std::ranges::fill(lane.scratch.samples, StageSample{});
  lane.scratch.stamp_ns = begin;
  run_work(work, lane);
  const std::uint64_t end = now_ns();
  const bool mixed = work.kind == WorkKind::kPairs;
  const auto items = static_cast<std::uint64_t>(mixed ? 2 * work.count : std::max<std::int64_t>(1, work.count));
  if (mixed) {
    lane.state.stages[mixer].add(items, end - begin);
  } else {
    count_stages(lane, items, end - begin - (lane.state.reading.ns() - reading));
  }
  if (lane.state.trace == nullptr) return;
  lane.state.trace->add(
      {.name = mixed ? "mix" : "rows", .begin_ns = begin, .end_ns = end, .batch = batch, .items = items});
}

void Compute::run_work(const Work& work, Lane& lane) {
  switch (work.kind) {
    case WorkKind::kFetched: return run_fetched(*work.fetched, lane);
    case WorkKind::kRows: return run_rows(work, lane);
    case WorkKind::kPairs: run_pairs(work); break;
  }
  complete(*work.slot, work.count, lane.state);
}

void Compute::run_rows(const Work& work, Lane& lane) {
  Slot& slot = *work.slot;
  const std::int64_t end = work.first + work.count;
  const std::int64_t timed = work.first + work.count / 2;  // the first row finds cold caches
  StepContext context{.seed = run_.options.seed,
                      .scratch = &lane.scratch,
                      .probe = &lane.state,
                      .trace = lane.state.trace,
                      .batch = slot.position.sequence,
                      .stores = stores_,
                      .row_bytes = slot.row_bytes(),
                      .ragged = run_.ragged_rows(),
                      .drawn = draws_ahead(run_.program, work.count) ? &lane.scratch.drawn : nullptr};
  for (int r = 0; r < run_.layout.local_replicas; ++r) {
    const SlotShare& share = slot.shares[static_cast<std::size_t>(r)];
    const std::int64_t first = std::max(work.first, share.first);
    const std::int64_t share_end = std::min(end, share.first + share.rows);
    if (first >= share_end) continue;
    const auto records =
        std::span<const std::uint64_t>(slot.records)
            .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(share_end - first));
    if (run_.copies_rows) {
      run_.program.copy_rows(records, slot.rows(r, first - share.first));
      continue;
    }
    for (std::int64_t example = first; example < share_end; ++example) {
      if (context.drawn != nullptr) draw_ahead(slot, example, example - first, share_end, context);
      context.ahead = reader_.look_ahead(records.subspan(static_cast<std::size_t>(example + 1 - first)));
      context.samples = example == timed ? lane.scratch.samples.data() : nullptr;
      run_row(slot, example, slot.rows(r, example - share.first), context, lane.state);
      if (example == timed) lane.scratch.samples.back().ns = now_ns() - lane.scratch.stamp_ns;
    }
  }
  context.drawn = nullptr;
  for (std::int64_t guest = std::max(work.first, slot.examples()); guest < end; ++guest) {
    context.ahead = {};
    context.samples = nullptr;
    run_row(slot, guest, slot.rows_of(guest), context, lane.state);
  }
  finish(stores_);
  errors_.guard(slot, work.first, [&] { charge_lane(lane); });
  complete(slot, work.count, lane.state);
}

// Draws for an example and those after it, up to `end`, unless they were drawn with one before it.
void Compute::draw_ahead(const Slot& slot, std::int64_t example, std::int64_t examples_before, std::int64_t end,
                         StepContext& context) const {
  context.drawn_row = static_cast<std::size_t>(examples_before) % DrawnAhead::kRecords;
  if (context.drawn_row > 0) return;
  const auto first = static_cast<std::size_t>(example);
  const std::size_t count = std::min(DrawnAhead::kRecords, static_cast<std::size_t>(end - example));
  context.scratch->drawn.draw(context.seed, run_.program.random_operations(),
                              std::span(slot.records).subspan(first, count),
                              std::span(slot.passes).subspan(first, count));
}

void Compute::run_row(Slot& slot, std::int64_t example, const SampleProgram::Rows& rows, StepContext& context,
                      ThreadState& state) {
  Scratch& scratch = *context.scratch;
  errors_.guard(slot, example, [&] {
    context.record = slot.records[static_cast<std::size_t>(example)];
    context.pass = slot.passes[static_cast<std::size_t>(example)];
    context.numbers = slot.numbers_of(static_cast<std::size_t>(example));
    choose_decoder(slot, example, context);
    const bool streamed = !slot.streamed.empty();
    const FoundSample cached = streamed ? FoundSample{} : reader_.find_cached(context.record, scratch.read);
    RecordView view;
    if (streamed) {
      view = slot.streamed[static_cast<std::size_t>(example)].get();
    } else if (cached.empty()) {
      view = reader_.read(context.record, scratch.read, state);
    }
    if (context.samples != nullptr) scratch.stamp_ns = now_ns();  // finding and reading are no steps
    if (!scratch.notes.empty()) scratch.notes = {};               // of a row that failed
    if (cached.empty()) {
      run_.program.run_record(view, context, rows);
    } else {
      run_.program.run_cached(cached, context, rows);
    }
    if (!scratch.notes.empty()) errors_.take_notes(slot, example, scratch.notes);
  });
}

// Spreads the rows that devices decode evenly over a batch.
void Compute::choose_decoder(const Slot& slot, std::int64_t example, StepContext& context) const noexcept {
  context.jpeg.window = nullptr;
  if (!run_.decoding.field) return;
  const JpegDestination to = slot.jpeg_of(example);
  if (to.window == nullptr) return;
  const std::int64_t share = decoded_on_device_.load(std::memory_order_relaxed);
  // Counts on from batch to batch, so that devices get their share of small batches, too.
  const auto sequence = static_cast<std::int64_t>(slot.position.sequence % 256);
  const std::int64_t number = (sequence * slot.examples() + example) % 256;
  if (number * share / 256 == (number + 1) * share / 256) return;
  context.jpeg = to;
  context.jpeg_field = *run_.decoding.field;
}

void Compute::run_fetched(FetchedRecord& fetched, Lane& lane) {
  Slot& slot = *fetched.slot;
  Scratch& scratch = lane.scratch;
  const auto row = static_cast<std::size_t>(fetched.example);
  errors_.guard(slot, fetched.example, [&] {
    StepContext context{.seed = run_.options.seed,
                        .pass = slot.passes[row],
                        .record = slot.records[row],
                        .scratch = &scratch,
                        .probe = &lane.state,
                        .samples = scratch.samples.data(),
                        .trace = lane.state.trace,
                        .batch = slot.position.sequence,
                        .stores = stores_,
                        .row_bytes = slot.row_bytes(),
                        .ragged = run_.ragged_rows(),
                        .numbers = slot.numbers_of(row)};
    choose_decoder(slot, fetched.example, context);
    const SampleProgram::Rows rows = slot.rows_of(fetched.example);
    if (!scratch.notes.empty()) scratch.notes = {};  // of a row that failed
    if (fetched.cached.empty()) {
      run_.program.run_record(fetched.view, context, rows);
    } else {
      run_.program.run_cached(fetched.cached, context, rows);
    }
    if (!scratch.notes.empty()) errors_.take_notes(slot, fetched.example, scratch.notes);
  });
  scratch.samples.back().ns = now_ns() - scratch.stamp_ns;
  finish(stores_);
  errors_.guard(slot, fetched.example, [&] { charge_lane(lane); });
  read_ahead_.give_back(&fetched);
  complete(slot, 1, lane.state);
}

void Compute::run_pairs(const Work& work) {
  Slot& slot = *work.slot;
  const Mixer& mixer = run_.mixers[slot.mixing - 1];
  const BatchKey key{.seed = run_.options.seed, .epoch = slot.position.epoch, .step = slot.position.step};
  const Pairing pairing(key, mixer.number(), slot.position.global_examples);
  if (run_.is_part()) {
    const auto pairs = slot.mixing_part.pairs(slot.mixing - 1)
                           .subspan(static_cast<std::size_t>(work.first), static_cast<std::size_t>(work.count));
    for (const MixingPart::Mixed& mixed : pairs) {
      mixer.mix(slot.rows_of(mixed.first), slot.rows_of(mixed.second), pairing.random(mixed.pair));
    }
    return;
  }
  for (std::int64_t i = work.first; i < work.first + work.count; ++i) {
    const Pair pair = pairing[i];
    mixer.mix(slot.rows_of(pair.first), slot.rows_of(pair.second), pairing.random(i));
  }
}

// Pairs that the batch-level operation mixes here.
std::int64_t Compute::pairs_of(const Slot& slot, std::size_t mixer) const noexcept {
  if (run_.is_part()) return static_cast<std::int64_t>(slot.mixing_part.pairs(mixer).size());
  return Pairing::pairs_of(slot.position.global_examples);
}

// Begins the next batch-level operation; false where none is left. A batch that failed is not mixed: its error is
// all that anyone sees of it.
bool Compute::mix_next(Slot& slot) {
  while (slot.mixing < run_.mixers.size() && !slot.failure) {
    const std::int64_t pairs = pairs_of(slot, slot.mixing++);
    if (pairs == 0) continue;
    if (slot.mark.load().state == SlotState::kWriting) slot.mark.move_to(SlotState::kMixing);
    slot.pending.store(pairs);
    mixing_.fetch_add(1);
    slot.pairs_left.offer(pairs);
    lanes_.wake((pairs + block_pairs_ - 1) / block_pairs_);
    return true;
  }
  return false;
}

void Compute::complete(Slot& slot, std::int64_t count, ThreadState& state) {
  if (slot.pending.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  if (slot.mixing == 0) errors_.settle(slot, state);
  if (mix_next(slot)) return;
  if (!slot.failure) {
    slot.compact();
    slot.draw_windows(run_.options.seed);
  }
  ring_.complete(slot);
}

}  // namespace headrace
