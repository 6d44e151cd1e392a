#include <sys/stat.h>
#include <unistd.h>

#include "headrace/devices/base/file.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

std::string whole_text_of(const std::filesystem::path& path) {
  const auto bytes = read_whole_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(FileTest, ReadsByPosition) {
  TempFolder folder;
  const File file = File::open(folder.write("a", "0123456789"));
  EXPECT_EQ(file.size(), 10U);
  Bytes bytes(4);
  file.read_exact(3, bytes);
  EXPECT_EQ(bytes, to_bytes("3456"));
  EXPECT_EQ(file.read_some(8, bytes), 2U);
  EXPECT_EQ(file.read_some(10, bytes), 0U);
  EXPECT_EQ(file.read_some(1000, bytes), 0U);
  file.read_exact(10, {});
}

TEST(FileTest, AShortFileIsAnErrorWithItsOffset) {
  TempFolder folder;
  const auto path = folder.write("a", "0123456789");
  const File file = File::open(path);
  Bytes bytes(4);
  const DataError error = error_of<DataError>([&] { file.read_exact(8, bytes); });
  EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
  EXPECT_EQ(error.location().source, path.string());
  EXPECT_EQ(error.location().offset, 10U);
}

TEST(FileTest, NoticesThatAFileWasCutShort) {
  TempFolder folder;
  const auto path = folder.write("a", std::string(10000, 'x'));
  const File file = File::open(path);
  std::filesystem::resize_file(path, 5000);
  Bytes bytes(10000);
  EXPECT_EQ(error_of<DataError>([&] { file.read_exact(0, bytes); }).location().offset, 5000U);
}

TEST(FileTest, IsReadByManyThreads) {
  TempFolder folder;
  std::string text(100'000, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 >> 3);
  const File file = File::open(folder.write("a", text));
  std::vector<std::jthread> threads;
  std::atomic<int> wrong{0};
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Bytes bytes(1000);
      for (std::size_t at = t * 100; at + bytes.size() <= text.size(); at += 700) {
        file.read_exact(at, bytes);
        if (bytes != to_bytes(text.substr(at, bytes.size()))) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(FileTest, RefusesWhatIsNoFile) {
  TempFolder folder;
  EXPECT_EQ(error_of<DataError>([&] { File::open(folder / "gone"); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of<DataError>([&] { File::open(folder.write("a", "x") / "below"); }).code(),
            ErrorCode::kNotFound);
  EXPECT_EQ(error_of<DataError>([&] { File::open(folder.path()); }).code(), ErrorCode::kInvalidArgument);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of<DataError>([&] { File::open(folder / "pipe"); }).code(), ErrorCode::kInvalidArgument)
      << "and does not wait";
  EXPECT_THAT(error_of<DataError>([&] { File::open(folder / "gone"); }).what(),
              HasSubstr((folder / "gone").string()));
}

TEST(FileTest, SaysThatItMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  TempFolder folder;
  const auto path = folder.write("a", "x");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  const DataError error = error_of<DataError>([&] { File::open(path); });
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_THAT(error.hint(), HasSubstr("permissions"));
}

// A process that opens files for days must not run out of descriptors.
TEST(FileTest, ClosesWhatItOpened) {
  TempFolder folder;
  const auto path = folder.write("a", "0123456789");
  const auto lowest_free = [] {
    const int descriptor = ::dup(0);
    ::close(descriptor);
    return descriptor;
  };
  const int before = lowest_free();
  for (int i = 0; i < 10; ++i) {
    File file = File::open(path);
    File moved = std::move(file);
    file = File::open(path);
    moved = std::move(file);
    Bytes bytes(10);
    moved.read_exact(0, bytes);
    EXPECT_THROW(File::open(folder.path()), DataError);
    list_directory(folder.path());
    write_file_atomically(folder / "b", "x");
  }
  EXPECT_EQ(lowest_free(), before);
}

TEST(ReadWholeFileTest, KeepsToItsLimit) {
  TempFolder folder;
  const auto path = folder.write("a", "0123456789");
  EXPECT_EQ(whole_text_of(path), "0123456789");
  EXPECT_EQ(read_whole_file(path, 10).size(), 10U);
  EXPECT_EQ(error_of<DataError>([&] { read_whole_file(path, 9); }).code(), ErrorCode::kOutOfMemory);
  EXPECT_TRUE(read_whole_file(folder.write("empty", "")).empty());
}

TEST(WriteFileAtomicallyTest, ReplacesTheWholeFileAndLeavesNothingElse) {
  TempFolder folder;
  const auto path = folder / "a";
  write_file_atomically(path, "first, and longer");
  write_file_atomically(path, "second");
  EXPECT_EQ(whole_text_of(path), "second");
  write_file_atomically(path, std::span<const std::byte>());
  EXPECT_EQ(whole_text_of(path), "");
  EXPECT_EQ(list_directory(folder.path()).size(), 1U);
}

TEST(WriteFileAtomicallyTest, LeavesTheOldFileWhereItFails) {
  TempFolder folder;
  std::filesystem::create_directories(folder / "a");
  folder.write("a/inside", "x");
  const DataError error = error_of<DataError>([&] { write_file_atomically(folder / "a", "text"); });
  EXPECT_EQ(error.location().source, (folder / "a").string()) << "a folder is not replaced";
  EXPECT_EQ(whole_text_of(folder / "a/inside"), "x");
  EXPECT_EQ(list_directory(folder.path()).size(), 1U) << "no temporary file is left";
  EXPECT_EQ(error_of<DataError>([&] { write_file_atomically(folder / "gone/a", "text"); }).code(),
            ErrorCode::kNotFound);
}

TEST(WriteFileAtomicallyTest, ReadersSeeOneVersionOrTheOther) {
  TempFolder folder;
  const auto path = folder / "a";
  const std::string versions[] = {std::string(20'000, 'a'), std::string(30'000, 'b')};
  write_file_atomically(path, versions[0]);
  std::atomic<bool> done{false};
  std::atomic<int> mixed{0};
  std::jthread reader([&] {
    while (!done) {
      const std::string text = whole_text_of(path);
      if (text != versions[0] && text != versions[1]) ++mixed;
    }
  });
  for (std::size_t i = 0; i < 20; ++i) write_file_atomically(path, versions[i % 2]);
  done = true;
  reader.join();
  EXPECT_EQ(mixed, 0);
}

TEST(ListDirectoryTest, SortsBytewiseAndFollowsLinks) {
  TempFolder folder;
  folder.write("b", "12");
  folder.write("B", "1");
  folder.write(".hidden", "");
  folder.write("\xC3\xA9", "");
  folder.write("dir/inside", "x");
  std::filesystem::create_directory_symlink(folder / "dir", folder / "link");
  std::filesystem::create_symlink(folder / "gone", folder / "dangling");
  std::vector<std::string> names;
  const auto entries = list_directory(folder.path());
  for (const auto& entry : entries) names.push_back(entry.path.filename().string());
  EXPECT_THAT(names, ElementsAre(".hidden", "B", "b", "dangling", "dir", "link", "\xC3\xA9"));
  EXPECT_EQ(entries[2].size, 2U);
  EXPECT_FALSE(entries[2].is_directory);
  EXPECT_FALSE(entries[3].is_directory);
  EXPECT_TRUE(entries[4].is_directory);
  EXPECT_TRUE(entries[5].is_directory);
  EXPECT_FALSE(entries[4].is_link);
  EXPECT_TRUE(entries[3].is_link && entries[5].is_link);
  EXPECT_EQ(entries[5].identity, entries[4].identity) << "of what it leads to";
  EXPECT_EQ(entries[5].identity, identity_of(folder / "dir"));
  EXPECT_NE(entries[4].identity, identity_of(folder.path()));
  EXPECT_EQ(error_of<DataError>([&] { identity_of(folder / "gone"); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of<DataError>([&] { list_directory(folder / "gone"); }).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of<DataError>([&] { list_directory(folder / "b"); }).code(), ErrorCode::kNotFound);
}

TEST(PathKindTest, TellsFilesFromFolders) {
  TempFolder folder;
  EXPECT_EQ(path_kind(folder.write("a", "x")), PathKind::kFile);
  EXPECT_EQ(path_kind(folder.path()), PathKind::kDirectory);
  EXPECT_EQ(path_kind(folder / "gone"), PathKind::kMissing);
  EXPECT_EQ(path_kind("/dev/null"), PathKind::kOther);
}

// Names of listings, archives and tables.
TEST(PathBelow, StaysInItsFolder) {
  const struct {
    const char *folder, *name, *path;  // null: refused
  } cases[] = {{"/data", "cat/1.jpg", "/data/cat/1.jpg"},
               {"/data", "/etc/x.jpg", nullptr},
               {"/data", "cat/../../x.jpg", nullptr},
               {"/data", "..", nullptr},
               {"/data", "a\\..\\..\\x.jpg", nullptr},
               {"/data", "", nullptr},
               {"/data", "..cat/...jpg", "/data/..cat/...jpg"},
               {"s3://b/set", "/etc/x.jpg", "s3://b/set//etc/x.jpg"},
               {"s3://b/set/", "/etc/x.jpg", "s3://b/set//etc/x.jpg"},
               {"s3://b/set", "%2e%2e/x.jpg", "s3://b/set/%2e%2e/x.jpg"},
               {"s3://b/set", "../other/x.jpg", nullptr},
               {"https://h/set", "a b.jpg", "https://h/set/a%20b.jpg"},
               {"https://h/set", "%2e%2E/x.jpg", nullptr},
               {"https://h/set", "a/%2e%2e%2fx.jpg", nullptr},
               {"https://h/set", "/x.jpg", nullptr}};
  for (const auto& one : cases) {
    if (one.path == nullptr) {
      EXPECT_THROW(path_below(one.folder, one.name), DataError) << one.folder << " " << one.name;
    } else {
      EXPECT_EQ(path_below(one.folder, one.name), one.path);
    }
  }
  EXPECT_THROW(path_below("/data", std::string("a\0b", 3)), DataError);
}

TEST(PathBelow, ATableNamesWhatIsItsUsersToName) {
  const struct {
    const char *folder, *name, *path;
  } cases[] = {{"/lists", "../images/1.jpg", "/lists/../images/1.jpg"},
               {"/lists", "/images/1.jpg", "/images/1.jpg"},
               {"/lists", "https://h/1.jpg", "https://h/1.jpg"},
               {"/lists", "file:///images/1.jpg", nullptr},
               {"https://h/lists", "1.jpg", "https://h/lists/1.jpg"},
               {"https://h/lists", "https://h/images/1.jpg", "https://h/images/1.jpg"},
               {"https://h/lists", "https://h/lists/%2e%2e/1.jpg", nullptr},
               {"https://h/lists", "https://h.other/images/1.jpg", nullptr},
               {"https://h/lists", "http://h/images/1.jpg", nullptr},
               {"https://h/lists", "/etc/1.jpg", nullptr},
               {"https://h/lists", "../1.jpg", nullptr},
               {"s3://b/lists", "s3://other/1.jpg", nullptr},
               {"s3://b/lists", "file:///etc/1.jpg", nullptr},
               {"s3://b/lists", "s3://b/images/1.jpg", "s3://b/images/1.jpg"}};
  for (const auto& one : cases) {
    if (one.path == nullptr) {
      EXPECT_THROW(named_in_table(one.folder, one.name), DataError) << one.folder << " " << one.name;
    } else {
      EXPECT_EQ(named_in_table(one.folder, one.name), one.path);
    }
  }
}

}  // namespace
}  // namespace headrace::test
