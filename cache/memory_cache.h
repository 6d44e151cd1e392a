// Decoded samples in memory: filled on the first pass, read on every later one.
#pragma once

#include <memory>

#include "headrace/cache/sample_cache.h"

namespace headrace {

// Stored bytes keep their address as long as the cache lives.
class MemoryCache final : public SampleCache {
 public:
  // `budget_bytes` limits what is stored; 0: unlimited.
  explicit MemoryCache(std::uint64_t budget_bytes = 0);
  ~MemoryCache() override;
  MemoryCache(const MemoryCache&) = delete;
  MemoryCache& operator=(const MemoryCache&) = delete;

  void bind(std::uint64_t fingerprint, std::uint64_t records) override;
  void expect(std::uint64_t record) const noexcept override;
  std::span<const std::byte> peek(std::uint64_t record) const noexcept override;
  // Uses no scratch.
  std::span<const std::byte> find(std::uint64_t record, std::vector<std::byte>& scratch) noexcept override;
  bool insert(std::uint64_t record, std::span<const std::byte> bytes) override;
  CacheCounters counters() const noexcept override;
  std::string describe() const override { return "memory"; }
  bool resident() const noexcept override { return true; }
  std::uint64_t budget_bytes() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
