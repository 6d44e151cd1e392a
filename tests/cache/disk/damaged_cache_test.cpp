// Files of a disk cache that were damaged, cut short or lost: no wrong sample is ever served.
#include "headrace/cache/cache_report.h"
#include "headrace/tests/cache/disk/disk_cache_fixture.h"

namespace headrace::test {
namespace {

class DamagedCacheTest : public DiskCacheTest {};

TEST_F(DamagedCacheTest, ReadsASegmentWithoutItsIndexThrough) {
  fill(0, kStoredRecords);
  remove_file(files(".index").front());
  {
    DiskCache cache(place_);
    cache.bind(kFingerprint, kStoredRecords);
    EXPECT_EQ(cache.counters().records, kStoredRecords);
  }
  EXPECT_EQ(files(".index").size(), 1U) << "indexed again";
}

TEST_F(DamagedCacheTest, WithoutItsIndexOneDamagedHeaderCostsOneEntry) {
  fill(0, kStoredRecords);
  remove_file(files(".index").front());
  const std::filesystem::path segment = files(".segment").front();
  Bytes bytes = read_whole_file(segment);
  const Bytes magic = to_bytes("HREN");
  auto at = bytes.begin();
  for (int entry = 0; entry < 5; ++entry) at = std::search(at + 1, bytes.end(), magic.begin(), magic.end());
  at[1] ^= std::byte{1};  // the mark itself
  at = std::search(at + 1, bytes.end(), magic.begin(), magic.end());
  at[20] ^= std::byte{64};  // the size of what is stored
  write_file_atomically(segment, bytes);
  DiskCache cache(place_);
  cache.bind(kFingerprint, kStoredRecords);
  EXPECT_EQ(cache.counters().records, kStoredRecords - 2);
}

// The promise of the format: whatever byte changes, no wrong sample is ever served.
TEST_F(DamagedCacheTest, TenThousandFlippedBitsGiveNoWrongSample) {
  fill(0, kStoredRecords);
  const std::filesystem::path segment = files(".segment").front(), index = files(".index").front();
  const Bytes sound_segment = read_whole_file(segment), sound_index = read_whole_file(index);
  Philox random({.seed = 11});
  int noticed = 0;
  constexpr int kRounds = 100, kFlips = 100;
  for (int round = 0; round < kRounds; ++round) {
    Bytes bad_segment = sound_segment, bad_index = sound_index;
    for (int flip = 0; flip < kFlips; ++flip) {
      // Now and then the index, and the segment's first bytes.
      Bytes& bytes = flip == 0 && round % 4 == 0 ? bad_index : bad_segment;
      const std::size_t size = round % 10 == 1 ? std::min<std::size_t>(bytes.size(), 400) : bytes.size();
      bytes[random.below(static_cast<std::uint32_t>(size))] ^= static_cast<std::byte>(1U << random.below(8));
    }
    write_file_atomically(segment, bad_segment, Durability::kLater);
    write_file_atomically(index, bad_index, Durability::kLater);
    DiskCache cache(place_);
    cache.bind(kFingerprint, kStoredRecords);
    for (std::uint64_t i = 0; i < kStoredRecords; ++i) {
      const Bytes bytes = found(cache, i);
      if (bytes.empty()) {
        ++noticed;
      } else {
        ASSERT_EQ(bytes, content(i)) << "round " << round << ", record " << i;
      }
    }
    for (const auto& path : files(".segment")) {
      if (path != segment) remove_file(path);
    }
  }
  EXPECT_GT(noticed, kRounds * kFlips / 4);
}

TEST_F(DamagedCacheTest, ReplacesWhatIsDamagedAndCountsIt) {
  fill(0, kStoredRecords);
  const std::filesystem::path segment = files(".segment").front();
  Bytes bytes = read_whole_file(segment);
  bytes[1000] ^= std::byte{1};
  bytes[bytes.size() / 2] ^= std::byte{1};
  write_file_atomically(segment, bytes);
  const CacheCounters first = serve_all();
  EXPECT_EQ(first.bad, 2U);
  EXPECT_EQ(first.misses, 2U);
  EXPECT_EQ(serve_all().misses, 0U) << "the sound copy is found, whichever is looked at first";
}

TEST_F(DamagedCacheTest, ATruncatedSegmentKeepsWhatIsLeft) {
  fill(0, kStoredRecords);
  const std::filesystem::path segment = files(".segment").front();
  const std::uint64_t size = read_whole_file(segment).size();
  for (const std::uint64_t left :
       {size - 1, size / 2, std::uint64_t{60}, std::uint64_t{40}, std::uint64_t{7}, std::uint64_t{0}}) {
    std::filesystem::resize_file(segment, left);
    const CacheCounters counters = serve_all();
    EXPECT_EQ(counters.records, kStoredRecords) << left;
    for (const auto& path : files(".segment")) {
      if (path != segment) remove_file(path);
    }
    if (!std::filesystem::exists(segment)) break;
  }
}

TEST_F(DamagedCacheTest, AFileThatShrinksWhileItIsReadIsNoWrongSample) {
  fill(0, kStoredRecords);
  DiskCache cache(place_);
  cache.bind(kFingerprint, kStoredRecords);
  ASSERT_TRUE(holds(cache, kStoredRecords - 1));
  std::filesystem::resize_file(files(".segment").front(), 1000);
  EXPECT_TRUE(found(cache, kStoredRecords - 1).empty());
  EXPECT_EQ(cache.counters().bad, 1U);
  EXPECT_TRUE(cache.insert(kStoredRecords - 1, content(kStoredRecords - 1)));
  EXPECT_TRUE(holds(cache, kStoredRecords - 1));
}

TEST_F(DamagedCacheTest, IsInspectedAndVerified) {
  EXPECT_THROW(inspect_cache(place_, Thoroughness::kEveryByte), Error);
  fill(0, 500);
  CacheReport report = inspect_cache(place_, Thoroughness::kIndexes).at(0);
  EXPECT_EQ(report.fingerprint, "0000000000001234");
  EXPECT_EQ(report.records, 500U);
  EXPECT_EQ(report.source_records, kStoredRecords);
  EXPECT_EQ(report.bad, 0U);
  const std::filesystem::path segment = files(".segment").front();
  const Bytes sound = read_whole_file(segment);
  Philox random({.seed = 2});
  for (int i = 0; i < 50; ++i) {
    Bytes bytes = sound;
    bytes[random.below(static_cast<std::uint32_t>(bytes.size()))] ^= static_cast<std::byte>(1U << random.below(8));
    write_file_atomically(segment, bytes, Durability::kLater);
    report = inspect_cache(place_, Thoroughness::kEveryByte).at(0);
    EXPECT_EQ(report.bad, 1U);
    EXPECT_EQ(report.findings.size(), 1U);
  }
}

}  // namespace
}  // namespace headrace::test
