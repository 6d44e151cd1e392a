// Decoded samples in a folder: filled on the first pass, read on every later one, by this process and others.
#pragma once

#include <filesystem>
#include <memory>

#include "headrace/cache/sample_cache.h"

namespace headrace {

struct DiskCacheOptions {
  std::uint64_t budget_bytes = 0;                          // of one stream's stored bytes; 0: no bound
  std::uint64_t segment_bytes = std::uint64_t{256} << 20;  // a segment is complete at this size
};

// The fingerprint of bind() covers the names, sizes and times of the source's files, all bytes of a source in
// memory, and of any other source 256 evenly spaced records and the first and last of each file, read when a
// loader is made. It cannot see a change to other records that keeps name, size and time: empty the folder after
// such a change.
//
// cache/FORMAT.md describes the bytes. Each read is checked: an entry that is damaged is dropped, counted and
// stored anew, and the stream of samples never changes. What was stored survives the death of the process at any
// moment but for the last megabyte. Processes that fill it at once share the work of storing and leave one copy of
// each sample; none waits for another longer than a second. Where the folder cannot be written it serves what it
// holds, and trouble() says why.
class DiskCache final : public SampleCache {
 public:
  // The folder need not exist. ConfigError where it is a file.
  explicit DiskCache(std::filesystem::path folder, DiskCacheOptions options = {});
  ~DiskCache() override;
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // Also looks at what is there.
  void bind(std::uint64_t fingerprint, std::uint64_t records) override;
  std::span<const std::byte> find(std::uint64_t record, std::vector<std::byte>& scratch) noexcept override;
  bool insert(std::uint64_t record, std::span<const std::byte> bytes) override;
  CacheCounters counters() const noexcept override;
  std::string describe() const override;
  bool resident() const noexcept override { return false; }
  std::string trouble() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
