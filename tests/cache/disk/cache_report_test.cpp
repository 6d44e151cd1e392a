// Reports on caches, whoever runs the tasks of a verification.
#include "headrace/cache/cache_report.h"
#include "headrace/pipeline/compute_arena.h"
#include "headrace/tests/cache/disk/disk_cache_fixture.h"

namespace headrace::test {
namespace {

class CacheReportTest : public DiskCacheTest {
 protected:
  CacheReport verify(const TaskRunner& run = {}) const {
    return inspect_cache(place_, Thoroughness::kEveryByte, run).at(0);
  }
  static TaskRunner on_threads(int threads) {
    return [threads](std::size_t count, const auto& task) { run_tasks(threads, count, task); };
  }
  // The first task last.
  static void backwards(std::size_t count, const std::function<void(std::size_t)>& task) {
    while (count-- > 0) task(count);
  }

  static void damage(const std::filesystem::path& file, int places, Philox& random) {
    Bytes bytes = read_whole_file(file);
    for (int i = 0; i < places; ++i) {
      bytes[random.below(static_cast<std::uint32_t>(bytes.size()))] ^=
          static_cast<std::byte>(1U << random.below(8));
    }
    write_file_atomically(file, bytes, Durability::kLater);
  }
};

TEST_F(CacheReportTest, OfDamagedSegmentsIsTheSameInAnyOrderAndOnAnyThreads) {
  for (std::uint64_t first = 0; first < kStoredRecords; first += 100) fill(first, first + 100);
  ASSERT_EQ(files(".segment").size(), 7U);
  EXPECT_EQ(verify(on_threads(4)).bad, 0U);
  Philox random({.seed = 8});
  for (int round = 0; round < 10; ++round) {
    for (const auto& segment : files(".segment")) damage(segment, static_cast<int>(random.below(3)), random);
    if (round == 4) damage(files(".index").at(2), 1, random);
    if (round == 6) std::filesystem::resize_file(files(".segment").at(5), 20);  // less than a header
    const CacheReport expected = verify();
    EXPECT_GT(expected.bad, 0U);
    EXPECT_LT(expected.records, kStoredRecords);
    EXPECT_EQ(verify(backwards), expected);
    for (const int threads : {1, 4}) EXPECT_EQ(verify(on_threads(threads)), expected) << threads << " threads";
  }
}

// Segments of more bytes than one task checks: what is found in them comes in the order of their entries.
TEST_F(CacheReportTest, OfOneLargeSegmentNamesItsEntriesInOrder) {
  constexpr std::uint64_t kRecords = 40;
  constexpr std::size_t kBytes = 400'000;
  {
    DiskCache cache(place_);
    cache.bind(kFingerprint, kRecords);
    Philox random({.seed = 3});
    Bytes noise(kBytes);
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      for (std::byte& byte : noise) byte = static_cast<std::byte>(random.next_u32());
      ASSERT_TRUE(cache.insert(i, noise));
    }
  }
  const std::filesystem::path segment = files(".segment").at(0);
  Bytes bytes = read_whole_file(segment);
  for (const std::size_t record : {3U, 17U, 18U, 39U}) bytes[record * (kBytes + 32) + 1000] ^= std::byte{1};
  write_file_atomically(segment, bytes);
  const CacheReport expected = verify();
  EXPECT_EQ(expected.bad, 4U);
  EXPECT_EQ(expected.records, kRecords - 4);
  EXPECT_THAT(expected.findings, ElementsAre(HasSubstr("record 3 "), HasSubstr("record 17 "),
                                             HasSubstr("record 18 "), HasSubstr("record 39 ")));
  EXPECT_EQ(verify(backwards), expected);
  for (const int threads : {1, 4}) EXPECT_EQ(verify(on_threads(threads)), expected) << threads << " threads";
}

}  // namespace
}  // namespace headrace::test
