// Decoded samples in a folder: filled on the first pass, read on every later one, by this process and others.
#pragma once

#include <filesystem>
#include <memory>

#include "headrace/cache/sample_cache.h"
#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

struct DiskCacheOptions {
  std::uint64_t budget_bytes = 0;                          // for one stream's stored bytes; 0: unlimited
  std::uint64_t segment_bytes = std::uint64_t{256} << 20;  // a segment is complete at this size
};

// The fingerprint given to bind() covers the names, sizes and times of the source's files. It also covers all
// bytes of a source in memory; of any other source, 256 evenly spaced records and the first and last of each file,
// which are read when a loader is made. A change to other records that keeps names, sizes and times goes
// unnoticed: empty the folder after such a change.
//
// cache/FORMAT.md describes the bytes. Each read is checked: a damaged entry is dropped, counted and stored again,
// and the stream of samples never changes. If the process dies, all but the last megabyte stored survives.
// Processes that fill the folder at the same time share the work and leave one copy of each sample; none waits for
// another longer than a second. If the folder cannot be written, the cache serves what it holds, and trouble()
// says why.
class DiskCache final : public SampleCache {
 public:
  // The folder need not exist. Throws ConfigError if it is a file.
  explicit DiskCache(std::filesystem::path folder, DiskCacheOptions options = {});
  ~DiskCache() override;
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // Also reads what is already stored.
  void bind(std::uint64_t fingerprint, std::uint64_t records) override;
  std::span<const std::byte> find(std::uint64_t record, std::vector<std::byte>& scratch) noexcept override;
  bool holds(std::uint64_t record) const noexcept override;
  bool insert(std::uint64_t record, std::span<const std::byte> bytes) override;
  CacheCounters counters() const noexcept override;
  std::string describe() const override;
  bool resident() const noexcept override { return false; }
  std::string trouble() const override;
  const std::filesystem::path& folder() const noexcept;
  const DiskCacheOptions& options() const noexcept;

 private:
  struct HEADRACE_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
