// Decoded samples kept from one pass for the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

struct CacheCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t records = 0;  // stored now
  std::uint64_t bytes = 0;    // stored now
  std::uint64_t refused = 0;  // did not fit the budget
  std::uint64_t bad = 0;      // found damaged, to be recomputed
};

// Thread-safe; no lock on the read path. Entries are never evicted: a record that does not fit the budget is
// refused and recomputed each time (fill once, never thrash).
class SampleCache {
 public:
  virtual ~SampleCache() = default;

  // Binds the cache to what it caches: `fingerprint` of source, operations and decoder, and the record count.
  // Throws ConfigError if a later call has another fingerprint: one cache, one stream.
  virtual void bind(std::uint64_t fingerprint, std::uint64_t records) = 0;

  // Returns the stored bytes of a record, valid until `scratch` is used again; empty if there are none. Counts a
  // hit or a miss. A record that cannot be read counts as missing.
  virtual std::span<const std::byte> find(std::uint64_t record, std::vector<std::byte>& scratch) noexcept = 0;

  // Hints that the record will be wanted soon. Affects speed only.
  virtual void expect(std::uint64_t /*record*/) const noexcept {}

  // Returns what find() would return if the record is in memory; for prefetching. Counts nothing.
  virtual std::span<const std::byte> peek(std::uint64_t /*record*/) const noexcept { return {}; }

  // Returns whether find() is likely to find the record. Cheap; counts nothing.
  virtual bool holds(std::uint64_t record) const noexcept { return !peek(record).empty(); }

  // Stores a copy unless the record is already stored or does not fit. Returns whether it is or will be stored.
  virtual bool insert(std::uint64_t record, std::span<const std::byte> bytes) = 0;

  virtual CacheCounters counters() const noexcept = 0;
  // Returns "memory" or "disk FOLDER".
  virtual std::string describe() const = 0;
  // Returns whether find() never waits for a file.
  virtual bool resident() const noexcept = 0;

  // Returns why nothing more is stored, for a warning; empty if all is well.
  virtual std::string trouble() const { return {}; }
};

}  // namespace headrace
