#include "headrace/cache/memory_cache.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "headrace/cache/lookup/record_table.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/memory.h"

namespace headrace {
namespace {

constexpr std::size_t kSlabBytes = std::size_t{4} << 20;

// One record: `bytes` is nullptr, then being_stored() while a thread stores it, then its final value. `size` is
// written first.
struct Entry {
  std::atomic<const std::byte*> bytes{nullptr};
  std::size_t size = 0;
};

const std::byte* being_stored() noexcept {
  static constexpr std::byte kMark{};
  return &kMark;
}

struct Table {
  std::uint64_t fingerprint;
  std::uint64_t records;
  std::unique_ptr<Entry[]> entries;
};

}  // namespace

struct MemoryCache::State {
  explicit State(std::uint64_t budget_bytes) : budget(budget_bytes) {}

  // Takes `size` bytes of the budget. Returns whether they were available.
  bool reserve(std::uint64_t size) noexcept {
    std::uint64_t used = bytes.load(std::memory_order_relaxed);
    do {
      if (budget != 0 && (size > budget || used > budget - size)) return false;
    } while (!bytes.compare_exchange_weak(used, used + size, std::memory_order_relaxed));
    return true;
  }

  std::byte* allocate(std::size_t size) {
    const std::scoped_lock lock(storing);
    return slabs.allocate(size).data();
  }

  // Stores a copy; nullptr if it does not fit the budget or the machine has no memory left.
  const std::byte* store(std::span<const std::byte> from) noexcept {
    if (!reserve(from.size())) return nullptr;
    try {
      std::byte* copy = allocate(from.size());
      std::memcpy(copy, from.data(), from.size());
      return copy;
    } catch (const std::bad_alloc&) {
      bytes.fetch_sub(from.size(), std::memory_order_relaxed);
      return nullptr;
    }
  }

  const std::uint64_t budget;
  std::mutex binding;
  std::unique_ptr<Table> owned;              // protected by binding
  std::atomic<const Table*> table{nullptr};  // owned, once it is complete
  std::mutex storing;                        // held for a few instructions per stored record, never while reading
  ByteSlabs slabs{kSlabBytes};               // protected by storing
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> records{0};
  std::atomic<std::uint64_t> refused{0};
  HitCounter lookups;
};

MemoryCache::MemoryCache(std::uint64_t budget_bytes) : state_(std::make_unique<State>(budget_bytes)) {}
MemoryCache::~MemoryCache() = default;

std::uint64_t MemoryCache::budget_bytes() const noexcept { return state_->budget; }

void MemoryCache::bind(std::uint64_t fingerprint, std::uint64_t records) {
  const std::scoped_lock lock(state_->binding);
  if (state_->owned != nullptr) {
    if (state_->owned->fingerprint == fingerprint && state_->owned->records == records) return;
    throw ConfigError("this memory cache belongs to another stream (" + to_hex(state_->owned->fingerprint) +
                          " with " + std::to_string(state_->owned->records) + " records, asked for " +
                          to_hex(fingerprint) + " with " + std::to_string(records) + ")",
                      "give each stream of samples a cache of its own: cache(memory())");
  }
  state_->owned = std::make_unique<Table>(
      Table{.fingerprint = fingerprint, .records = records, .entries = make_record_table<Entry>(records)});
  state_->table.store(state_->owned.get(), std::memory_order_release);
}

void MemoryCache::expect(std::uint64_t record) const noexcept {
  const Table* table = state_->table.load(std::memory_order_acquire);
  if (table != nullptr && record < table->records) __builtin_prefetch(&table->entries[record]);
}

std::span<const std::byte> MemoryCache::peek(std::uint64_t record) const noexcept {
  const Table* table = state_->table.load(std::memory_order_acquire);
  if (table == nullptr || record >= table->records) return {};
  const Entry& entry = table->entries[record];
  const std::byte* bytes = entry.bytes.load(std::memory_order_acquire);
  if (bytes == nullptr || bytes == being_stored()) return {};
  return {bytes, entry.size};
}

std::span<const std::byte> MemoryCache::find(std::uint64_t record, std::vector<std::byte>& /*scratch*/) noexcept {
  const std::span<const std::byte> found = peek(record);
  found.empty() ? state_->lookups.miss() : state_->lookups.hit();
  return found;
}

bool MemoryCache::insert(std::uint64_t record, std::span<const std::byte> bytes) {
  const Table* table = state_->table.load(std::memory_order_acquire);
  HEADRACE_CHECK(table != nullptr, "a memory cache is bound before it is filled");
  HEADRACE_CHECK(record < table->records, "no such record in this memory cache");
  HEADRACE_CHECK(!bytes.empty(), "an empty record cannot be told from a missing one");
  Entry& entry = table->entries[record];
  const std::byte* expected = nullptr;
  if (!entry.bytes.compare_exchange_strong(expected, being_stored(), std::memory_order_acquire)) {
    return expected != being_stored();
  }
  const std::byte* copy = state_->store(bytes);
  entry.size = bytes.size();
  entry.bytes.store(copy, std::memory_order_release);
  (copy != nullptr ? state_->records : state_->refused).fetch_add(1, std::memory_order_relaxed);
  return copy != nullptr;
}

CacheCounters MemoryCache::counters() const noexcept {
  return {.hits = state_->lookups.hits(),
          .misses = state_->lookups.misses(),
          .records = state_->records.load(std::memory_order_relaxed),
          .bytes = state_->bytes.load(std::memory_order_relaxed),
          .refused = state_->refused.load(std::memory_order_relaxed)};
}

}  // namespace headrace
