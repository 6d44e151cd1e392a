#include "headrace/devices/base/file_lock.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
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

TEST(FolderLock, TellsThatItIsAnothers) {
  const test::TempFolder folder;
  const FolderLock first(folder / "", kNow);
  EXPECT_FALSE(first.is_anothers());
  EXPECT_TRUE(FolderLock(folder / "", kShort).is_anothers());
  EXPECT_FALSE(FolderLock(folder / "missing", kShort).is_anothers());
}

TEST(LeftOver, IsATemporaryFileThatNobodyHolds) {
  const test::TempFolder folder;
  for (const char* name :
       {"a.12.0.tmp", "a.b.4194304.17.tmp", "a.tmp", "a.b.tmp", ".1.2.tmp", "a.1.2", "1.2.tmp"}) {
    folder.write(name, "left");
  }
  std::filesystem::create_symlink("a", folder / "linked.1.2.tmp");
  const FileWriter alive(folder / "alive");
  std::vector<std::string> found;
  for (const DirectoryEntry& entry : list_directory(folder.path())) {
    if (is_left_over(entry)) found.push_back(entry.path.filename().string());
  }
  EXPECT_EQ(found, (std::vector<std::string>{"a.12.0.tmp", "a.b.4194304.17.tmp"}));
}

}  // namespace
}  // namespace headrace
