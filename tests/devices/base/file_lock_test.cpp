#include "headrace/devices/base/file_lock.h"

#include <gtest/gtest.h>

#include <optional>

#include "headrace/devices/base/clock.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace {
namespace {

constexpr std::chrono::milliseconds kNow{0}, kShort{50};

TEST(FolderLock, IsHeldByOneAtATime) {
  const test::TempFolder folder;
  std::optional<FolderLock> first(std::in_place, folder / "", kNow);
  EXPECT_TRUE(first->held());
  const Stopwatch watch;
  EXPECT_FALSE(FolderLock(folder / "", kShort).held());
  EXPECT_GE(watch.seconds(), 0.05) << "it waits as long as it was told to";
  first.reset();
  EXPECT_TRUE(FolderLock(folder / "", kNow).held());
}

TEST(FolderLock, IsNotHeldWhereThereIsNoFolder) {
  const test::TempFolder folder;
  EXPECT_FALSE(FolderLock(folder / "missing", kShort).held());
  EXPECT_FALSE(FolderLock(folder.write("file", "x"), kShort).held());
}

}  // namespace
}  // namespace headrace
