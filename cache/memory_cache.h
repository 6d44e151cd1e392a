// Decoded samples in memory: filled on the first pass, read on every later one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace headrace {

struct CacheCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t records = 0;  // stored now
  std::uint64_t bytes = 0;    // stored now
  std::uint64_t refused = 0;  // did not fit the budget
};

// Thread-safe and lock-free on the read path. Entries are never evicted nor changed: what does not fit the
// budget is refused and computed anew each time (fill once, never thrash).
class MemoryCache {
 public:
  // `budget_bytes` bounds what is stored; 0 means no bound.
  explicit MemoryCache(std::uint64_t budget_bytes = 0);
  ~MemoryCache();
  MemoryCache(const MemoryCache&) = delete;
  MemoryCache& operator=(const MemoryCache&) = delete;

  // Binds the cache to what it caches: `fingerprint` of source, operations and decoder, and the record count.
  // The first call sets it; a later call with another fingerprint is a ConfigError: one cache, one stream.
  void bind(std::uint64_t fingerprint, std::uint64_t records);

  // The stored bytes of a record, valid as long as the cache; empty when it is not there. Counts a hit or miss.
  std::span<const std::byte> find(std::uint64_t record) noexcept;

  // Stores a copy unless it is there already or does not fit. Returns whether the record is stored now.
  bool insert(std::uint64_t record, std::span<const std::byte> bytes);

  CacheCounters counters() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
