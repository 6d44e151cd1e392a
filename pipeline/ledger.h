// Records which record went to which batch and replica, and proves that each epoch saw every record exactly once.
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

// The required contents of an epoch of a stream.
struct EpochContents {
  std::vector<std::uint64_t> records;  // ascending, each as often as it occurs
  std::uint64_t dropped = 0;           // number that may be missing: an incomplete last batch

  // Returns each of the records 0 .. count - 1, `times` times.
  static EpochContents all(std::uint64_t count, std::uint64_t times = 1);
};

// Not thread-safe.
class Ledger {
 public:
  void add(const Batch& batch, int replica);
  void add(const LedgerEntry& entry) { entries_.push_back(entry); }

  // Returns the entries in the order they were added.
  const std::vector<LedgerEntry>& entries() const noexcept { return entries_; }

  // Returns the number of records set aside by an ErrorPolicy, over all epochs.
  std::uint64_t set_aside() const noexcept { return set_aside_.size(); }

  // Returns std::nullopt if the epoch holds exactly the expected records, a bad one where it was skipped or
  // replaced; otherwise the error, naming the first missing or surplus record and the batches it is in.
  std::optional<std::string> find_breach(std::uint64_t epoch, const EpochContents& expected) const;

 private:
  struct SetAside {
    std::uint64_t epoch = 0;
    std::uint64_t record = 0;
    std::optional<std::uint64_t> substitute = {};
  };

  // Returns the records in ascending order; a substitute counts as the record it replaces.
  std::vector<std::uint64_t> seen_in(std::uint64_t epoch) const;

  std::vector<LedgerEntry> entries_;
  std::vector<SetAside> set_aside_;
};

}  // namespace headrace
