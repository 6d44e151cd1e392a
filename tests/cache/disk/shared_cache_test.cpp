// A cache that several processes use, and what is told of it.
#include <sys/wait.h>
#include <unistd.h>

#include "headrace/cache/cache_report.h"
#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/file_lock.h"
#include "headrace/pipeline/compute_arena.h"
#include "headrace/tests/cache/disk/disk_cache_fixture.h"

namespace headrace::test {
namespace {

// Several processes, or several caches of one, that fill one folder at once or die while they do.

class SharedCacheTest : public DiskCacheTest {};

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

TEST_F(SharedCacheTest, AKilledProcessLeavesWhatItWrote) {
  std::uint64_t before = 0;
  for (const std::uint64_t stored : {1, 250, 600}) {
    in_child(
        [&] {
          auto* cache = new DiskCache(place_);  // not destroyed: killed in the middle
          cache->bind(kFingerprint, kStoredRecords);
          for (std::uint64_t i = 0; i < stored; ++i) cache->insert(i, content(i));
        },
        true);
    DiskCache cache(place_);
    cache.bind(kFingerprint, kStoredRecords);
    EXPECT_GE(cache.counters().records, before);
    before = cache.counters().records;
  }
  EXPECT_GT(before, 100U) << "only the last megabyte is lost";
  EXPECT_GT(serve_all().hits, before);
  for (const DirectoryEntry& entry : list_directory(place_ / "0000000000001234")) {
    EXPECT_THAT((std::vector<std::string>{".segment", ".index"}), Contains(entry.path.extension()));
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
        _exit(fill(process, process == killed ? after : kStoredRecords) ? 0 : 1);
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
      cache.bind(kFingerprint, kStoredRecords);
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t record = (i * 3 + static_cast<std::uint64_t>(process) * 175) % kStoredRecords;
        const Bytes there = found(cache, record);
        if (there.empty()) {
          cache.insert(record, content(record));
        } else {
          right = right && there == content(record);
        }
      }
      if (count < kStoredRecords) std::raise(SIGKILL);
    }
    return right;
  }

  std::filesystem::path place_;
  int processes_;
  DiskCacheOptions options_;
};

TEST_F(SharedCacheTest, FourProcessesFillItWithOneCopyOfEach) {
  for (int round = 0; round < 5; ++round) {
    std::filesystem::remove_all(place_);
    Fillers(place_, 4).run();
    EXPECT_EQ(entries(), kStoredRecords) << "one copy each";
    EXPECT_EQ(serve_all().misses, 0U);
    EXPECT_EQ(entries(), kStoredRecords);
    const CacheReport report = inspect_cache(place_, Thoroughness::kEveryByte).front();
    EXPECT_EQ(report.bad, 0U);
    EXPECT_EQ(report.records, kStoredRecords);
  }
}

TEST_F(SharedCacheTest, OneOfFourKilledInTheMiddleIsNoHindrance) {
  for (const std::uint64_t after : {50, 350, 690}) {
    std::filesystem::remove_all(place_);
    Fillers(place_, 4).run(1, after);
    EXPECT_EQ(entries(), kStoredRecords) << "one copy each, and the others went on";
    EXPECT_EQ(serve_all().misses, 0U);
    EXPECT_EQ(inspect_cache(place_, Thoroughness::kEveryByte).front().bad, 0U);
  }
}

TEST_F(SharedCacheTest, SeveralCachesOfAProcessShareWhatTheyStore) {
  DiskCache one(place_), other(place_);
  one.bind(kFingerprint, kStoredRecords);
  other.bind(kFingerprint, kStoredRecords);
  for (std::uint64_t i = 0; i < kStoredRecords; ++i) ASSERT_TRUE(one.insert(i, content(i)));
  for (std::uint64_t i = 0; i < kStoredRecords; ++i) ASSERT_TRUE(other.insert(i, content(i)));
  for (std::uint64_t i = 0; i < kStoredRecords; ++i) ASSERT_TRUE(holds(other, i)) << i;
  EXPECT_EQ(entries(), kStoredRecords);
  EXPECT_EQ(other.counters().records, kStoredRecords);
  EXPECT_EQ(other.counters().bytes, one.counters().bytes);
}

TEST_F(SharedCacheTest, WhatOthersStoreTakesOfTheBudget) {
  constexpr std::uint64_t kBudget = 200'000;
  Fillers(place_, 4, {.budget_bytes = kBudget}).run();
  std::uint64_t stored = 0;
  each_entry([&](const SegmentEntry& entry) { stored += entry.stored_bytes; });
  EXPECT_LE(stored, kBudget);
  EXPECT_GT(stored, kBudget / 4);
}

TEST_F(SharedCacheTest, AProcessThatStandsStillWithTheLockDoesNotStopTheOthers) {
  std::filesystem::create_directories(place_ / "0000000000001234");
  const FolderLock held(place_ / "0000000000001234", std::chrono::milliseconds(0));
  ASSERT_TRUE(held.held());
  const Stopwatch watch;
  fill(0, kStoredRecords);
  EXPECT_LT(watch.seconds(), 10) << "one wait, not one a write";
  EXPECT_EQ(entries(), kStoredRecords);
}

// Reports on caches, whoever runs the tasks of a verification.

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
