#include "headrace/devices/base/overwriting.h"

#include <gtest/gtest.h>

#include "headrace/tests/support/temp_folder.h"

namespace headrace::test {
namespace {

TEST(OverwritingTest, IsByTheFileAndNotByItsName) {
  TempFolder folder;
  folder.write("a", "1");
  folder.write("b", "1");
  std::filesystem::create_symlink("a", folder / "link");
  std::filesystem::create_hard_link(folder / "a", folder / "hard");
  for (const char* name : {"a", "link", "hard", "./a"}) EXPECT_TRUE(would_overwrite(folder / name, folder / "a"));
  EXPECT_FALSE(would_overwrite(folder / "b", folder / "a"));
  EXPECT_FALSE(would_overwrite(folder / "none", folder / "a"));
  EXPECT_FALSE(would_overwrite(folder / "a", folder / "none"));
}

TEST(OverwritingTest, LooksThroughFoldersAndLinksThatLeadInCircles) {
  TempFolder folder;
  folder.write("data/deep/a", "1");
  folder.write("beside/b", "1");
  folder.write("away/c", "1");
  std::filesystem::create_symlink("..", folder / "data/deep/up");
  std::filesystem::create_symlink(folder / "beside", folder / "data/linked");
  EXPECT_TRUE(would_overwrite(folder / "data/deep/a", folder / "data"));
  EXPECT_TRUE(would_overwrite(folder / "data/linked/b", folder / "data"));
  EXPECT_TRUE(would_overwrite(folder / "beside/b", folder / "data"));
  EXPECT_FALSE(would_overwrite(folder / "away/c", folder / "data"));
  EXPECT_FALSE(would_overwrite(folder / "data/deep/new", folder / "data"));
  for (const char* inside :
       {"data/new", "data/deep/new", "data/deep/../new", "data/linked/new", "beside/new", "data/a"}) {
    EXPECT_TRUE(would_add(folder / inside, folder / "data")) << inside;
  }
  for (const char* outside : {"new", "away/new", "data/../away/new"}) {
    EXPECT_FALSE(would_add(folder / outside, folder / "beside")) << outside;
  }
  EXPECT_FALSE(would_add(folder / "data/deep/a.new", folder / "data/deep/a"));
}

}  // namespace
}  // namespace headrace::test
