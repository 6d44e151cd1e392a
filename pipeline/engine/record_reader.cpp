#include "headrace/pipeline/engine/record_reader.h"

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/tasks/retry.h"

namespace headrace {

std::span<const std::byte> RecordReader::find_cached(std::uint64_t record, std::vector<std::byte>& scratch) const {
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
  SampleCache* const cache = run_.plan.cache.get();
  if (cache == nullptr) return run_.source().peek(records.front());
  if (records.size() > kExpected) cache->expect(records[kExpected]);
  return cache->peek(records.front());
}

}  // namespace headrace
