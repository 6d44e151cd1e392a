// A disk cache of 700 records in a folder of its own.
#pragma once

#include "headrace/cache/disk/segment_file.h"
#include "headrace/cache/disk_cache.h"
#include "headrace/tests/support/cache_samples.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

inline constexpr std::uint64_t kFingerprint = 0x1234, kStoredRecords = 700;

class DiskCacheTest : public testing::Test {
 protected:
  DiskCache open(DiskCacheOptions options = {}) { return DiskCache(place_, options); }

  void fill(std::uint64_t begin, std::uint64_t end, DiskCacheOptions options = {}) {
    DiskCache cache(place_, options);
    cache.bind(kFingerprint, kStoredRecords);
    for (std::uint64_t i = begin; i < end; ++i) ASSERT_TRUE(cache.insert(i, content(i)));
  }

  std::vector<std::filesystem::path> files(const std::string& kind) const {
    std::vector<std::filesystem::path> found;
    for (const DirectoryEntry& entry : list_directory(place_ / "0000000000001234")) {
      if (entry.path.extension() == kind) found.push_back(entry.path);
    }
    return found;
  }

  // Each that is stored, whichever process did it.
  template <typename Use>
  void each_entry(const Use& use) const {
    for (const auto& path : files(".segment")) {
      const SegmentReader reader(path, {.fingerprint = kFingerprint, .records = kStoredRecords});
      for (const SegmentEntry& entry : reader.scan()) use(entry);
    }
  }
  std::uint64_t entries() const {
    std::uint64_t count = 0;
    each_entry([&](const SegmentEntry&) { ++count; });
    return count;
  }

  // Finds each record whole or not at all; stores what is missing; then all are there.
  CacheCounters serve_all() {
    DiskCache cache(place_);
    cache.bind(kFingerprint, kStoredRecords);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::uint64_t i = 0; i < kStoredRecords; ++i) {
        const Bytes bytes = found(cache, i);
        if (bytes.empty()) {
          EXPECT_TRUE(cache.insert(i, content(i)));
        } else {
          EXPECT_EQ(bytes, content(i)) << i;
        }
      }
    }
    for (std::uint64_t i = 0; i < kStoredRecords; ++i) EXPECT_TRUE(holds(cache, i)) << i;
    return cache.counters();
  }

  TempFolder folder_;
  std::filesystem::path place_ = folder_ / "cache";
};

}  // namespace headrace::test
