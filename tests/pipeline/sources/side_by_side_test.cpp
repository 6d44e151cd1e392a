#include "headrace/pipeline/sources/side_by_side.h"

#include "headrace/devices/base/remote.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using namespace std::chrono_literals;

TEST(ReadSideBySide, TakesWhatWasReadInOrder) {
  for (const bool remote : {false, true}) {
    for (const std::size_t files : {0, 1, 2, 7, 500}) {
      std::vector<int> read(files);
      std::vector<std::size_t> taken;
      read_side_by_side(
          files, remote, [&](std::size_t file) { read[file] = 1; },
          [&](std::size_t file) {
            EXPECT_EQ(read[file], 1);
            taken.push_back(file);
          });
      std::vector<std::size_t> all(files);
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(taken, all);
    }
  }
}

TEST(ReadSideBySide, ReadsSeveralAtOnce) {
  std::mutex mutex;
  std::condition_variable changed;
  int reading = 0;
  read_side_by_side(
      4, /*remote=*/true,
      [&](std::size_t) {  // each waits for all others
        std::unique_lock lock(mutex);
        ++reading;
        changed.notify_all();
        EXPECT_TRUE(changed.wait_for(lock, 60s, [&] { return reading == 4; }));
      },
      [](std::size_t) {});
}

TEST(ReadSideBySide, IsAFewFilesAheadOfWhoTakesThem) {
  std::atomic<std::size_t> read{0};
  read_side_by_side(
      1000, /*remote=*/true, [&](std::size_t) { ++read; },
      [&](std::size_t file) { EXPECT_LE(read.load(), file + 1 + 256); });
}

TEST(ReadSideBySide, ThrowsTheFirstFilesErrorAfterWhatPrecedesIt) {
  std::vector<std::size_t> taken;
  const auto read = [](std::size_t file) {
    if (file == 3) std::this_thread::sleep_for(20ms);  // others fail before it
    if (file >= 3) throw DataError(ErrorCode::kDataCorrupt, "file " + std::to_string(file), {});
  };
  EXPECT_THAT(message_of<DataError>(
                  [&] { read_side_by_side(100, true, read, [&](std::size_t file) { taken.push_back(file); }); }),
              HasSubstr("file 3"));
  EXPECT_THAT(taken, ElementsAre(0, 1, 2));
}

TEST(ReadSideBySide, CallsThePollOfWhoWaitsAndEndsReadsThatNobodyWants) {
  if (remote::library().empty()) GTEST_SKIP() << "built without remote data";
  std::atomic<int> ended{0};
  const std::function<void()> interrupt = [] { throw std::runtime_error("interrupted"); };
  const std::function<void()>* const before = remote::set_wait_poll(&interrupt);
  const auto read = [&](std::size_t) {
    struct Count {
      std::atomic<int>& ended;
      ~Count() { ++ended; }
    } count{ended};
    for (;;) {  // as a fetch from a server that hangs
      remote::poll_while_waiting();
      std::this_thread::sleep_for(1ms);
    }
  };
  EXPECT_THROW(read_side_by_side(10, true, read, [](std::size_t) {}), std::runtime_error);
  remote::set_wait_poll(before);
  EXPECT_EQ(ended.load(), 10);
}

}  // namespace
}  // namespace headrace::test
