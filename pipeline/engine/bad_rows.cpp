// What becomes of rows that could not be written, and of a consumer that is given too many of them.
#include <fmt/format.h>

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/engine/stream_engine.h"
#include "headrace/pipeline/operations/step_error.h"

namespace headrace {
namespace {

constexpr int kDraws = 16;                       // of substitutes, before a row is given up
constexpr std::uint16_t kSubstitution = 0xFFFF;  // keys the draws; operations are numbered from 0

}  // namespace

void StreamEngine::fail_row(Slot& slot, Failure failure) {
  const bool ends_stream = options_.errors.on_error == OnError::kFail || !failure.is_of_record();
  if (ends_stream) return slot.fail(std::move(failure));
  slot.set_aside(std::move(failure.what));
}

// What there is to say of the images of a row that was written.
void StreamEngine::take_notes(Slot& slot, std::int64_t row, ImageNotes& notes) {
  if (notes.oriented) slot.oriented.fetch_add(1, std::memory_order_relaxed);
  if (!notes.warning.empty()) {
    const StepError warning(ErrorCode::kDataCorrupt, notes.step, notes.warning);
    slot.warn(Failure::of_record(*plan_.source, slot.records[static_cast<std::size_t>(row)], row, warning).what);
  }
  notes = {};
}

// By the thread that wrote the last row.
void StreamEngine::settle(Slot& slot, ThreadState& state) {
  std::ranges::sort(slot.warned, {}, &BadRecord::row);
  if (slot.bad.empty()) return;
  std::ranges::sort(slot.bad, {}, &BadRecord::row);  // they came in any order, and are listed even where it fails
  if (slot.failure) return;
  if (options_.errors.on_error == OnError::kSkip) return slot.close_gaps();
  for (BadRecord& bad : slot.bad) substitute(slot, bad, state);
  state.idle();
}

// Writes another record's sample into the row. Which one is a function of seed, epoch and record.
void StreamEngine::substitute(Slot& slot, BadRecord& bad, ThreadState& state) {
  const auto row = static_cast<std::size_t>(bad.row);
  Philox random({.seed = options_.seed,
                 .epoch = static_cast<std::uint32_t>(slot.passes[row]),
                 .record = slot.records[row],
                 .operation = kSubstitution});
  Scratch scratch;
  for (int draw = 0; draw < kDraws; ++draw) {
    const Located other = schedule_.draw(slot.position.epoch, random);
    try {
      const StepContext context{.seed = options_.seed,
                                .pass = other.pass,
                                .record = other.record,
                                .scratch = &scratch,
                                .probe = &state,
                                .batch = slot.position.sequence};
      const auto cached = find_cached(other.record, scratch.read);
      if (!cached.empty()) {
        program_.run_cached(cached, context, slot.rows_of(bad.row));
      } else {
        program_.run_record(read_record(other.record, scratch.read, state), context, slot.rows_of(bad.row));
      }
      slot.records[row] = other.record;
      slot.passes[row] = other.pass;
      bad.substitute = other.record;
      return;
    } catch (const std::exception& error) {
      Failure failure = Failure::of_record(*plan_.source, other.record, bad.row, error);
      if (!failure.is_of_record()) return slot.fail(std::move(failure));
    }
  }
  Failure given_up{.what = bad};
  given_up.what.cause += fmt::format("; nor could any of {} other records drawn in its place be used", kDraws);
  slot.fail(std::move(given_up));
}

void StreamEngine::count_noted(Consumer& consumer, const Slot& slot, int replica) {
  consumer.oriented.fetch_add(slot.oriented.load(std::memory_order_relaxed), std::memory_order_relaxed);
  consumer.warned.fetch_add(slot.warned.size(), std::memory_order_relaxed);
  if (replica != 0 || !quarantine_) return;
  for (const BadRecord& warned : slot.warned) quarantine_->add_warning(warned, slot.position);
}

// Every consumer counts for itself what all of them see, so that all are refused the same batch.
void StreamEngine::count_bad(Consumer& consumer, const Slot& slot, int replica) {
  if (slot.bad.empty() && !slot.failure) return;
  if (replica == 0) list_bad(slot);
  if (slot.failure) return;
  consumer.bad.fetch_add(slot.bad.size(), std::memory_order_relaxed);
  try {
    limit_bad(consumer, slot);
  } catch (const Error& error) {
    consumer.failed = error.message();
    throw;
  }
}

void StreamEngine::list_bad(const Slot& slot) {
  if (options_.errors.tally != nullptr && !slot.failure) {
    for (const BadRecord& bad : slot.bad) options_.errors.tally->add(plan_.source->info(), bad);
  }
  if (!quarantine_) return;
  for (const BadRecord& bad : slot.bad) quarantine_->add(bad, options_.errors.on_error, slot.position);
  if (slot.failure && slot.failure->is_of_record()) {
    quarantine_->add(slot.failure->what, OnError::kFail, slot.position);
  }
}

void StreamEngine::limit_bad(Consumer& consumer, const Slot& slot) const {
  if (consumer.epoch != slot.position.epoch) consumer.epoch_bad = 0;
  consumer.epoch = slot.position.epoch;
  const std::uint64_t before = consumer.epoch_bad;
  consumer.epoch_bad += slot.bad.size();
  if (consumer.epoch_bad > bad_limit_.max_bad()) bad_limit_.refuse(slot.bad[bad_limit_.max_bad() - before]);
  const bool skips = options_.errors.on_error == OnError::kSkip;
  if (skips && consumer.epoch_bad == schedule_.examples_per_epoch()) bad_limit_.refuse_all(slot.bad.back());
}

}  // namespace headrace
