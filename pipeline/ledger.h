// Which record went to which batch and replica, and the proof that each epoch saw every record exactly once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/batch.h"

namespace HEADRACE_API headrace {

struct LedgerEntry {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  int replica = 0;
  std::uint64_t record = 0;
  bool operator==(const LedgerEntry&) const = default;
};

// What an epoch of a stream must consist of.
struct EpochContents {
  std::vector<std::uint64_t> records;  // ascending, as often as each one occurs
  std::uint64_t dropped = 0;           // of them may be missing: an incomplete last batch

  // Each of the records 0 .. count - 1, `times` times.
  static EpochContents all(std::uint64_t count, std::uint64_t times = 1);
};

// Not thread-safe.
class Ledger {
 public:
  void add(const Batch& batch, int replica);
  void add(const LedgerEntry& entry) { entries_.push_back(entry); }

  // In the order they were added.
  const std::vector<LedgerEntry>& entries() const noexcept { return entries_; }

  // Records set aside by an ErrorPolicy, over all epochs.
  std::uint64_t set_aside() const noexcept { return set_aside_.size(); }

  // Nothing where the epoch holds exactly the expected records, a bad one at the place where it was skipped or
  // another one stands for it; else what is wrong, naming the first missing or surplus record and the batches it
  // is in.
  std::optional<std::string> find_breach(std::uint64_t epoch, const EpochContents& expected) const;

 private:
  struct SetAside {
    std::uint64_t epoch = 0;
    std::uint64_t record = 0;
    std::optional<std::uint64_t> substitute = {};
  };

  // Ascending; what stands for another record counts as that.
  std::vector<std::uint64_t> seen_in(std::uint64_t epoch) const;

  std::vector<LedgerEntry> entries_;
  std::vector<SetAside> set_aside_;
};

}  // namespace headrace
