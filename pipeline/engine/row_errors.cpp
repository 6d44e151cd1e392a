#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/engine/row_errors.h"
#include "headrace/pipeline/operations/machinery/step.h"
#include "headrace/pipeline/tasks/retry.h"

namespace headrace {
namespace {

constexpr int kMaxDraws = 16;                    // of substitutes, before a row is given up
constexpr std::uint16_t kSubstitution = 0xFFFF;  // keys the draws; operations are numbered from 0

}  // namespace

FoundSample RecordReader::find_cached(std::uint64_t record, std::vector<std::byte>& scratch) const {
  run_.filter_failures.check(record);
  return run_.program.find_cached(record, scratch);
}

RecordView RecordReader::read(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state) const {
  const auto may_ask_again = [&] {
    if (stopped_.load(std::memory_order_relaxed)) return false;
    state.retries.fetch_add(1, std::memory_order_relaxed);
    return true;
  };
  return read_with_retries(
      clock_, [&] { return read_once(record, scratch, state); }, may_ask_again);
}

RecordView RecordReader::read_once(std::uint64_t record, std::vector<std::byte>& scratch,
                                   ThreadState& state) const {
  const Source& source = run_.source();
  if (source.info().resident) return source.read(record, scratch);
  const std::uint64_t begin = now_ns();
  state.begin(kReading, record);
  RecordView view;
  run_user_code(state, [&] { view = source.read(record, scratch); });
  state.idle();
  state.reading.add(1, now_ns() - begin);
  return view;
}

std::span<const std::byte> RecordReader::look_ahead(std::span<const std::uint64_t> records) const noexcept {
  constexpr std::size_t kExpected = 4;
  if (records.empty()) return {};
  if (run_.plan.caches.empty()) return run_.source().peek(records.front());
  SampleCache* const cache = run_.plan.caches.back().cache.get();
  if (records.size() > kExpected) cache->expect(records[kExpected]);
  return cache->peek(records.front());
}

void RowErrors::fail(Slot& slot, std::int64_t example, const std::exception& cause) const {
  const std::uint64_t record = slot.records[static_cast<std::size_t>(example)];
  Failure failure = Failure::of_record(run_.source(), record, example, cause);
  const bool ends_stream = run_.options.errors.on_error == OnError::kFail || !failure.is_of_record();
  if (ends_stream) return slot.fail(std::move(failure));
  slot.set_aside(std::move(failure.what));
}

void RowErrors::take_notes(Slot& slot, std::int64_t example, ImageNotes& notes) const {
  if (notes.oriented) slot.oriented.fetch_add(1, std::memory_order_relaxed);
  if (!notes.warning.empty()) {
    const StepError warning(ErrorCode::kDataCorrupt, notes.step, notes.warning);
    const std::uint64_t record = slot.records[static_cast<std::size_t>(example)];
    slot.warn(Failure::of_record(run_.source(), record, example, warning).what);
  }
  notes = {};
}

void RowErrors::settle(Slot& slot, ThreadState& state) const {
  std::ranges::sort(slot.warned, {}, &BadRecord::row);
  if (slot.bad.empty()) return;
  std::ranges::sort(slot.bad, {}, &BadRecord::row);  // they came in any order, and are listed even where it fails
  if (slot.failure) return;
  if (run_.skips()) return slot.close_gaps();
  for (BadRecord& bad : slot.bad) substitute(slot, bad, state);
  std::erase_if(slot.bad, [&](const BadRecord& bad) { return bad.row >= slot.examples(); });  // theirs to tell
  state.idle();
}

// Writes another record's sample into the row. Which one is a function of seed, epoch and record.
void RowErrors::substitute(Slot& slot, BadRecord& bad, ThreadState& state) const {
  const auto row = static_cast<std::size_t>(bad.row);
  Philox random({.seed = run_.options.seed,
                 .epoch = static_cast<std::uint32_t>(slot.passes[row]),
                 .record = slot.records[row],
                 .operation = kSubstitution});
  Scratch scratch;
  std::vector<std::uint64_t> numbers(run_.plan.numbers);
  for (int draw = 0; draw < kMaxDraws; ++draw) {
    const Located other = run_.schedule.draw(slot.position, random, numbers);
    try {
      const StepContext context{.seed = run_.options.seed,
                                .pass = other.pass,
                                .record = other.record,
                                .scratch = &scratch,
                                .probe = &state,
                                .batch = slot.position.sequence,
                                .row_bytes = slot.row_bytes(),
                                .ragged = run_.ragged_rows(),
                                .numbers = numbers.data()};
      const auto cached = reader_.find_cached(other.record, scratch.read);
      if (!cached.empty()) {
        run_.program.run_cached(cached, context, slot.rows_of(bad.row));
      } else {
        run_.program.run_record(reader_.read(other.record, scratch.read, state), context, slot.rows_of(bad.row));
      }
      slot.records[row] = other.record;
      slot.passes[row] = other.pass;
      bad.substitute = other.record;
      return;
    } catch (const std::exception& error) {
      Failure failure = Failure::of_record(run_.source(), other.record, bad.row, error);
      if (!failure.is_of_record()) return slot.fail(std::move(failure));
    }
  }
  Failure given_up{.what = bad};
  given_up.what.cause += fmt::format("; nor could any of {} other records drawn in its place be used", kMaxDraws);
  slot.fail(std::move(given_up));
}

}  // namespace headrace
