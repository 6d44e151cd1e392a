#include "headrace/pipeline/operations/machinery/drawn_ahead.h"

#include <algorithm>

#include "headrace/devices/base/simd.h"

namespace headrace {
namespace {

constexpr std::size_t kLanes = 16;  // blocks computed at once

// Philox::round10() of as many counters under one key: word i of all counters is in counters[i].
HEADRACE_SIMD void round10_each(std::uint32_t (&counters)[4][kLanes], std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * counters[0][i];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counters[2][i];
      counters[0][i] = static_cast<std::uint32_t>(b >> 32) ^ counters[1][i] ^ key0;
      counters[1][i] = static_cast<std::uint32_t>(b);
      counters[2][i] = static_cast<std::uint32_t>(a >> 32) ^ counters[3][i] ^ key1;
      counters[3][i] = static_cast<std::uint32_t>(a);
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

}  // namespace

void DrawnAhead::draw(std::uint64_t seed, std::span<const std::uint16_t> operations,
                      std::span<const std::uint64_t> records, std::span<const std::uint64_t> passes) {
  seed_ = seed;
  operations_ = operations;
  drawn_ = records.size();
  std::ranges::copy(records, records_.begin());
  std::ranges::transform(passes, passes_.begin(),
                         [](std::uint64_t pass) { return static_cast<std::uint32_t>(pass); });
  blocks_.resize(operations.size() * kRecords);
  for (std::size_t at = 0; at < operations.size(); ++at) {
    for (std::size_t first = 0; first < drawn_; first += kLanes) {
      const std::size_t count = std::min(kLanes, drawn_ - first);
      std::uint32_t counters[4][kLanes] = {};
      for (std::size_t i = 0; i < count; ++i) {
        const Philox::Block counter = Philox::counter_of(
            {.epoch = passes_[first + i], .record = records_[first + i], .operation = operations[at]});
        for (std::size_t word = 0; word < 4; ++word) counters[word][i] = counter[word];
      }
      round10_each(counters, static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
      for (std::size_t i = 0; i < count; ++i) {
        blocks_[at * kRecords + first + i] = {counters[0][i], counters[1][i], counters[2][i], counters[3][i]};
      }
    }
  }
}

}  // namespace headrace
