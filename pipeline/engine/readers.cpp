#include "headrace/pipeline/engine/readers.h"

#include <fmt/format.h>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/remote.h"

namespace headrace {
namespace {

void charge_record(FetchedRecord& record) {
  try {
    record.charged.hold(record.scratch.capacity(), "a record read ahead");
  } catch (const Error&) {
    std::vector<std::byte>().swap(record.scratch);
    record.charged.hold(0, "");
    throw;
  }
}

}  // namespace

void Readers::start(int count, const std::shared_ptr<void>& owner, Trace* trace) {
  for (int i = 0; i < count; ++i) {
    auto state = std::make_shared<ThreadState>();
    if (trace != nullptr) state->trace = &trace->ring(fmt::format("reader {}", i));
    threads_.emplace_back(
        [this, owner, i](ThreadState& own) { end_stream_on_error(ring_, own, [&] { run(own, i); }); },
        std::move(state));
  }
}

void Readers::start_pulling(StreamFeed& feed, const std::shared_ptr<void>& owner, Trace* trace) {
  auto state = std::make_shared<ThreadState>();
  if (trace != nullptr) state->trace = &trace->ring("stream");
  threads_.emplace_back(
      [this, &feed, owner](ThreadState& own) { end_stream_on_error(ring_, own, [&] { feed.run(own); }); },
      std::move(state));
}

void Readers::end(std::uint64_t deadline) {
  for (EngineThread& thread : threads_) thread.end(ring_.clock(), deadline);
}

void Readers::run(ThreadState& state, int number) {
  const remote::AbandonableThread mark;
  std::uint64_t idle_since = now_ns();
  while (FetchedRecord* const record = read_ahead_.next(number)) {
    const std::uint64_t begin = now_ns();
    state.waits.add(begin - idle_since);
    Slot& slot = *record->slot;
    const std::uint64_t batch = slot.position.sequence;
    const bool fetched = fetch(*record, state);
    state.idle();
    idle_since = now_ns();
    if (state.trace != nullptr) {
      state.trace->add({.name = "read", .begin_ns = begin, .end_ns = idle_since, .batch = batch, .items = 1});
    }
    if (fetched) {
      read_ahead_.put(record);
      compute_.wake();
    } else {
      read_ahead_.give_back(record);
      compute_.complete(slot, 1, state);
    }
  }
}

// False where it failed; then its row has.
bool Readers::fetch(FetchedRecord& record, ThreadState& state) {
  Slot& slot = *record.slot;
  const std::uint64_t number = slot.records[static_cast<std::size_t>(record.example)];
  bool fetched = false;
  errors_.guard(slot, record.example, [&] {
    record.cached = reader_.find_cached(number, record.scratch);
    if (record.cached.empty()) record.view = reader_.read(number, record.scratch, state);
    charge_record(record);
    fetched = true;
  });
  return fetched;
}

}  // namespace headrace
