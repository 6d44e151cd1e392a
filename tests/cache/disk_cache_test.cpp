#include "headrace/cache/disk_cache.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "headrace/cache/cache_report.h"
#include "headrace/cache/segment_reader.h"
#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/folder_lock.h"
#include "headrace/devices/base/rng.h"
#include "headrace/tests/conformance/sample_cache_suite.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace::test {
namespace {

using ::testing::HasSubstr;

struct DiskCacheMaker {
  TempFolder folder;
  std::unique_ptr<SampleCache> make(std::uint64_t budget_bytes) {
    return std::make_unique<DiskCache>(folder / "cache", DiskCacheOptions{.budget_bytes = budget_bytes});
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Disk, SampleCacheSuite, DiskCacheMaker);

constexpr std::uint64_t kFingerprint = 0x1234, kRecords = 700;

class DiskCacheTest : public testing::Test {
 protected:
  DiskCache open(DiskCacheOptions options = {}) { return DiskCache(place_, options); }

  void fill(std::uint64_t begin, std::uint64_t end, DiskCacheOptions options = {}) {
    DiskCache cache(place_, options);
    cache.bind(kFingerprint, kRecords);
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
      const SegmentReader reader(path, {.fingerprint = kFingerprint, .records = kRecords});
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
    cache.bind(kFingerprint, kRecords);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::uint64_t i = 0; i < kRecords; ++i) {
        const Bytes bytes = found(cache, i);
        if (bytes.empty()) {
          EXPECT_TRUE(cache.insert(i, content(i)));
        } else {
          EXPECT_EQ(bytes, content(i)) << i;
        }
      }
    }
    for (std::uint64_t i = 0; i < kRecords; ++i) EXPECT_TRUE(holds(cache, i)) << i;
    return cache.counters();
  }

  TempFolder folder_;
  std::filesystem::path place_ = folder_ / "cache";
};

TEST_F(DiskCacheTest, IsWarmWhenItIsOpenedAgain) {
  fill(0, kRecords);
  DiskCache cache(place_);
  cache.bind(kFingerprint, kRecords);
  EXPECT_EQ(cache.counters().records, kRecords);
  for (std::uint64_t i = 0; i < kRecords; ++i) ASSERT_TRUE(holds(cache, i)) << i;
  EXPECT_EQ(cache.counters().misses, 0U);
  EXPECT_EQ(files(".segment").size(), 1U) << "a warm run writes nothing";
}

TEST_F(DiskCacheTest, GoesOnWhereAnotherRunEnded) {
  fill(0, 300);
  fill(300, kRecords);
  EXPECT_EQ(serve_all().hits, 3 * kRecords);
  EXPECT_EQ(files(".segment").size(), 2U);
}

TEST_F(DiskCacheTest, BeginsANewSegmentWhereOneIsFull) {
  fill(0, kRecords, {.segment_bytes = 1});
  EXPECT_GE(files(".segment").size(), 2U);
  EXPECT_EQ(files(".segment").size(), files(".index").size());
  EXPECT_EQ(serve_all().misses, 0U);
}

TEST_F(DiskCacheTest, LooksAtItsOwnStreamOnly) {
  fill(0, kRecords);
  DiskCache other(place_);
  other.bind(kFingerprint + 1, kRecords);
  EXPECT_EQ(other.counters().records, 0U);
  DiskCache longer(place_);
  longer.bind(kFingerprint, kRecords + 1);
  EXPECT_EQ(longer.counters().records, 0U) << "the source had another number of records";
}

TEST_F(DiskCacheTest, ReadsASegmentWithoutItsIndexThrough) {
  fill(0, kRecords);
  remove_file(files(".index").front());
  {
    DiskCache cache(place_);
    cache.bind(kFingerprint, kRecords);
    EXPECT_EQ(cache.counters().records, kRecords);
  }
  EXPECT_EQ(files(".index").size(), 1U) << "indexed anew";
}

TEST_F(DiskCacheTest, WithoutItsIndexOneDamagedHeaderCostsOneEntry) {
  fill(0, kRecords);
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
  cache.bind(kFingerprint, kRecords);
  EXPECT_EQ(cache.counters().records, kRecords - 2);
}

TEST_F(DiskCacheTest, ServesWhatIsStillInItsBuffer) {
  DiskCache cache(place_);
  cache.bind(kFingerprint, kRecords);
  cache.insert(3, content(3));
  EXPECT_TRUE(holds(cache, 3));
}

TEST_F(DiskCacheTest, CompressesOnlyWhatGetsSmaller) {
  Philox random({.seed = 4});
  const auto stored = [&](bool noise) {
    const std::filesystem::path place = folder_ / (noise ? "noise" : "flat");
    {
      DiskCache cache(place);
      cache.bind(1, 200);
      for (std::uint64_t i = 0; i < 200; ++i) {
        Bytes sample(3072, static_cast<std::byte>(i));
        if (noise) {
          for (std::byte& byte : sample) byte = static_cast<std::byte>(random.below(256));
        }
        cache.insert(i, sample);
        EXPECT_EQ(found(cache, i), sample);
      }
    }
    return inspect_cache(place, Thoroughness::kEveryByte).front().bytes;
  };
  EXPECT_GT(stored(true), 200U * 3072);
  EXPECT_LT(stored(false), 200U * 3072 / 3);
}

// The promise of the format: whatever byte changes, no wrong sample is ever served.
TEST_F(DiskCacheTest, TenThousandFlippedBitsGiveNoWrongSample) {
  fill(0, kRecords);
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
    cache.bind(kFingerprint, kRecords);
    for (std::uint64_t i = 0; i < kRecords; ++i) {
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

TEST_F(DiskCacheTest, ReplacesWhatIsDamagedAndCountsIt) {
  fill(0, kRecords);
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

TEST_F(DiskCacheTest, ATruncatedSegmentKeepsWhatIsLeft) {
  fill(0, kRecords);
  const std::filesystem::path segment = files(".segment").front();
  const std::uint64_t size = read_whole_file(segment).size();
  for (const std::uint64_t left :
       {size - 1, size / 2, std::uint64_t{60}, std::uint64_t{40}, std::uint64_t{7}, std::uint64_t{0}}) {
    std::filesystem::resize_file(segment, left);
    const CacheCounters counters = serve_all();
    EXPECT_EQ(counters.records, kRecords) << left;
    for (const auto& path : files(".segment")) {
      if (path != segment) remove_file(path);
    }
    if (!std::filesystem::exists(segment)) break;
  }
}

TEST_F(DiskCacheTest, AFileThatShrinksWhileItIsReadIsNoWrongSample) {
  fill(0, kRecords);
  DiskCache cache(place_);
  cache.bind(kFingerprint, kRecords);
  ASSERT_TRUE(holds(cache, kRecords - 1));
  std::filesystem::resize_file(files(".segment").front(), 1000);
  EXPECT_TRUE(found(cache, kRecords - 1).empty());
  EXPECT_EQ(cache.counters().bad, 1U);
  EXPECT_TRUE(cache.insert(kRecords - 1, content(kRecords - 1)));
  EXPECT_TRUE(holds(cache, kRecords - 1));
}

TEST_F(DiskCacheTest, LeavesForeignFilesAlone) {
  fill(0, 10);
  const std::filesystem::path stream = place_ / "0000000000001234";
  folder_.write("cache/notes.txt", "mine");
  folder_.write("cache/0000000000001234/other.segment",
                "not a segment of ours, but longer than a header of forty");
  EXPECT_EQ(serve_all().records, kRecords);
  EXPECT_TRUE(std::filesystem::exists(place_ / "notes.txt"));
  EXPECT_TRUE(std::filesystem::exists(stream / "other.segment"));
}

TEST_F(DiskCacheTest, RefusesAFileInPlaceOfAFolder) {
  const auto file = folder_.write("file", "x");
  try {
    DiskCache cache(file);
    FAIL() << "was opened";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(file.string()));
  }
}

// Runs `work` in a process of its own and waits for its end.
template <typename Work>
void in_child(Work work, bool kill_itself) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    work();
    if (kill_itself) std::raise(SIGKILL);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(kill_itself ? WIFSIGNALED(status) : WIFEXITED(status), true);
}

TEST_F(DiskCacheTest, AKilledProcessLeavesWhatItWrote) {
  std::uint64_t before = 0;
  for (const std::uint64_t stored : {1, 250, 600}) {
    in_child(
        [&] {
          auto* cache = new DiskCache(place_);  // not destroyed: killed in the middle
          cache->bind(kFingerprint, kRecords);
          for (std::uint64_t i = 0; i < stored; ++i) cache->insert(i, content(i));
        },
        true);
    DiskCache cache(place_);
    cache.bind(kFingerprint, kRecords);
    EXPECT_GE(cache.counters().records, before);
    before = cache.counters().records;
  }
  EXPECT_GT(before, 100U) << "only the last megabyte is lost";
  EXPECT_GT(serve_all().hits, before);
  for (const DirectoryEntry& entry : list_directory(place_ / "0000000000001234")) {
    EXPECT_THAT((std::vector<std::string>{".segment", ".index"}), testing::Contains(entry.path.extension()));
  }
}

// Serves all records from several processes at once, each from another place on; they begin together.
// One of them may kill itself after so many records.
class Fillers {
 public:
  Fillers(std::filesystem::path place, int processes, DiskCacheOptions options = {})
      : place_(std::move(place)), processes_(processes), options_(options) {}

  void run(int killed = -1, std::uint64_t after = 0) {
    int gate[2];
    ASSERT_EQ(pipe(gate), 0);
    std::vector<pid_t> children;
    for (int process = 0; process < processes_; ++process) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        close(gate[1]);
        char byte = 0;
        if (read(gate[0], &byte, 1) != 0) _exit(2);  // its end says: begin
        _exit(fill(process, process == killed ? after : kRecords) ? 0 : 1);
      }
      children.push_back(child);
    }
    close(gate[0]);
    close(gate[1]);
    for (int process = 0; process < processes_; ++process) {
      int status = 0;
      ASSERT_EQ(waitpid(children[static_cast<std::size_t>(process)], &status, 0),
                children[static_cast<std::size_t>(process)]);
      EXPECT_EQ(process == killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0, true);
    }
  }

 private:
  bool fill(int process, std::uint64_t count) const {
    bool right = true;
    {
      DiskCache cache(place_, options_);
      cache.bind(kFingerprint, kRecords);
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t record = (i * 3 + static_cast<std::uint64_t>(process) * 175) % kRecords;
        const Bytes there = found(cache, record);
        if (there.empty()) {
          cache.insert(record, content(record));
        } else {
          right = right && there == content(record);
        }
      }
      if (count < kRecords) std::raise(SIGKILL);
    }
    return right;
  }

  std::filesystem::path place_;
  int processes_;
  DiskCacheOptions options_;
};

TEST_F(DiskCacheTest, FourProcessesFillItWithOneCopyOfEach) {
  for (int round = 0; round < 5; ++round) {
    std::filesystem::remove_all(place_);
    Fillers(place_, 4).run();
    EXPECT_EQ(entries(), kRecords) << "one copy each";
    EXPECT_EQ(serve_all().misses, 0U);
    EXPECT_EQ(entries(), kRecords);
    const CacheReport report = inspect_cache(place_, Thoroughness::kEveryByte).front();
    EXPECT_EQ(report.bad, 0U);
    EXPECT_EQ(report.records, kRecords);
  }
}

TEST_F(DiskCacheTest, OneOfFourKilledInTheMiddleIsNoHindrance) {
  for (const std::uint64_t after : {50, 350, 690}) {
    std::filesystem::remove_all(place_);
    Fillers(place_, 4).run(1, after);
    EXPECT_EQ(entries(), kRecords) << "one copy each, and the others went on";
    EXPECT_EQ(serve_all().misses, 0U);
    EXPECT_EQ(inspect_cache(place_, Thoroughness::kEveryByte).front().bad, 0U);
  }
}

TEST_F(DiskCacheTest, SeveralCachesOfAProcessShareWhatTheyStore) {
  DiskCache one(place_), other(place_);
  one.bind(kFingerprint, kRecords);
  other.bind(kFingerprint, kRecords);
  for (std::uint64_t i = 0; i < kRecords; ++i) ASSERT_TRUE(one.insert(i, content(i)));
  for (std::uint64_t i = 0; i < kRecords; ++i) ASSERT_TRUE(other.insert(i, content(i)));
  for (std::uint64_t i = 0; i < kRecords; ++i) ASSERT_TRUE(holds(other, i)) << i;
  EXPECT_EQ(entries(), kRecords);
  EXPECT_EQ(other.counters().records, kRecords);
  EXPECT_EQ(other.counters().bytes, one.counters().bytes);
}

TEST_F(DiskCacheTest, WhatOthersStoreTakesOfTheBudget) {
  constexpr std::uint64_t kBudget = 200'000;
  Fillers(place_, 4, {.budget_bytes = kBudget}).run();
  std::uint64_t stored = 0;
  each_entry([&](const SegmentEntry& entry) { stored += entry.stored_bytes; });
  EXPECT_LE(stored, kBudget);
  EXPECT_GT(stored, kBudget / 4);
}

TEST_F(DiskCacheTest, AProcessThatStandsStillWithTheLockDoesNotStopTheOthers) {
  std::filesystem::create_directories(place_ / "0000000000001234");
  const FolderLock held(place_ / "0000000000001234", std::chrono::milliseconds(0));
  ASSERT_TRUE(held.held());
  const Stopwatch watch;
  fill(0, kRecords);
  EXPECT_LT(watch.seconds(), 10) << "one wait, not one a write";
  EXPECT_EQ(entries(), kRecords);
}

TEST_F(DiskCacheTest, IsInspectedAndVerified) {
  EXPECT_THROW(inspect_cache(place_, Thoroughness::kEveryByte), Error);
  fill(0, 500);
  CacheReport report = inspect_cache(place_, Thoroughness::kIndexes).at(0);
  EXPECT_EQ(report.fingerprint, "0000000000001234");
  EXPECT_EQ(report.records, 500U);
  EXPECT_EQ(report.source_records, kRecords);
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
