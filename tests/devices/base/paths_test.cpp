#include "headrace/devices/base/file_writer.h"
#include "headrace/tests/support/test.h"

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

// A path with a NUL byte is refused, never cut there.

namespace headrace {
namespace {

TEST(NulInPath, IsRefusedByEveryCall) {
  const test::TempFolder folder;
  const std::filesystem::path beginning = folder.write("there", "text");
  const std::filesystem::path path = beginning.string() + std::string(1, '\0') + ".png";
  const std::vector<std::function<void()>> calls = {
      [&] { File::open(path); },          [&] { read_whole_file(path); },
      [&] { Pipe::open(path); },          [&] { FileWriter writer(path); },
      [&] { AppendFile file(path, {}); }, [&] { append_to_file(path, "more"); },
      [&] { make_folders(path); },        [&] { remove_file(path); },
      [&] { identity_of(path); },         [&] { list_directory(folder.path().string() + std::string(1, '\0')); },
  };
  const auto before = test::contents_of(folder.path());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const DataError error = test::error_of<DataError>([&] { calls[i](); });
    EXPECT_NE(std::string(error.what()).find("\\x00"), std::string::npos) << i << ": " << error.what();
    EXPECT_NE(std::string(error.what()).find("NUL"), std::string::npos) << i << ": " << error.what();
  }
  EXPECT_EQ(path_kind(path), PathKind::kMissing);
  EXPECT_EQ(test::contents_of(folder.path()), before);
}

}  // namespace
}  // namespace headrace
