// Files that are written as a whole, and locks.
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/file_lock.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/system_file.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

Bytes pattern(std::size_t size, int first) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(first));
  return bytes;
}

TEST(FileWriterTest, WritesPiecesOfAnySizeInOrder) {
  TempFolder folder;
  FileWriter writer(folder / "a");
  Bytes whole;
  int first = 0;
  for (const std::size_t size : {0, 1, 1000, 1 << 20, 3, (1 << 20) + 1, 5 << 20, 17}) {
    const Bytes piece = pattern(size, ++first);
    writer.append(piece);
    whole.insert(whole.end(), piece.begin(), piece.end());
    EXPECT_EQ(writer.size(), whole.size());
  }
  EXPECT_EQ(path_kind(folder / "a"), PathKind::kMissing) << "not before commit()";
  writer.commit();
  EXPECT_EQ(read_whole_file(folder / "a"), whole);
  EXPECT_EQ(list_directory(folder.path()).size(), 1U);
}

TEST(FileWriterTest, LeavesNothingWithoutCommit) {
  TempFolder folder;
  folder.write("a", "old");
  {
    FileWriter writer(folder / "a");
    writer.append(pattern(5 << 20, 0));
  }
  EXPECT_EQ(to_bytes(read_whole_file(folder / "a")), to_bytes("old"));
  EXPECT_EQ(list_directory(folder.path()).size(), 1U);
}

TEST(FileWriterTest, ReplacesAFileAndNoFolder) {
  TempFolder folder;
  folder.write("a", "old");
  FileWriter writer(folder / "a");
  writer.commit();
  EXPECT_TRUE(read_whole_file(folder / "a").empty());
  std::filesystem::create_directories(folder / "b");
  folder.write("b/inside", "x");
  EXPECT_THROW(FileWriter(folder / "b"), DataError);
  EXPECT_EQ(list_directory(folder.path()).size(), 2U) << "no temporary file is left";
  EXPECT_THROW(FileWriter(folder / "gone" / "a"), DataError);
}

// Under a name that the program chose nothing that others put there is written to.
TEST(FileWriterTest, ReplacesALinkOrPipeWhereLinksAreNotFollowed) {
  const TempFolder folder;
  folder.write("theirs", "theirs");
  std::filesystem::create_symlink("theirs", folder / "link");
  std::filesystem::create_symlink("made", folder / "dangling");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "dangling", "pipe"}) {
    for (const Appears appears : {Appears::kWhole, Appears::kGrowing}) {
      FileWriter writer(folder / name, appears, Links::kReplaced);
      writer.append(std::as_bytes(std::span("ours", 4)));
      writer.commit();
      EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / name))) << name;
      EXPECT_EQ(read_whole_file(folder / name).size(), 4U);
    }
  }
  EXPECT_EQ(read_whole_file(folder / "theirs").size(), 6U);
  EXPECT_FALSE(std::filesystem::exists(folder / "made"));
  std::filesystem::create_directory(folder / "folder");
  EXPECT_THROW(FileWriter(folder / "folder", Appears::kWhole, Links::kReplaced), DataError);
}

// Of a process that had the same number, as the first one of every container has.
TEST(FileWriterTest, TakesAnotherNameWhereItsTemporaryOneIsTaken) {
  const TempFolder folder;
  { const FileWriter probe(folder / "probe"); }
  for (int number = 0; number < 200; ++number) {
    folder.write("a." + std::to_string(::getpid()) + "." + std::to_string(number) + ".tmp", "left");
  }
  write_file_atomically(folder / "a", "text");
  EXPECT_EQ(read_whole_file(folder / "a").size(), 4U);
  for (const DirectoryEntry& entry : list_directory(folder.path())) EXPECT_EQ(entry.size, 4U) << entry.path;
}

TEST(FileWriterTest, AGrowingFileIsSeenUnlessOneIsThere) {
  TempFolder folder;
  folder.write("there", "old");
  FileWriter fresh(folder / "new", Appears::kGrowing), again(folder / "there", Appears::kGrowing);
  for (FileWriter* writer : {&fresh, &again}) {
    writer->append(to_bytes("line"));
    writer->flush();
  }
  EXPECT_EQ(to_bytes(read_whole_file(folder / "new")), to_bytes("line"));
  EXPECT_EQ(to_bytes(read_whole_file(folder / "there")), to_bytes("old"));
  again.commit();
  EXPECT_EQ(to_bytes(read_whole_file(folder / "there")), to_bytes("line"));
}

TEST(FileWriterTest, AGrowingFileStaysOnceItHoldsSomething) {
  TempFolder folder;
  { FileWriter empty(folder / "a", Appears::kGrowing); }
  EXPECT_EQ(path_kind(folder / "a"), PathKind::kMissing);
  {
    FileWriter cut(folder / "b", Appears::kGrowing);
    cut.append(to_bytes("line"));
    cut.flush();
  }
  EXPECT_EQ(to_bytes(read_whole_file(folder / "b")), to_bytes("line"));
}

// In a process of its own, which ends as a signal would end it: a name that was taken is never freed.
TEST(FileWriterTest, UnfinishedFilesAreRemovedAtOnce) {
  TempFolder folder;
  const auto end_in_the_middle = [&] {
    FileWriter finished(folder / "a"), cut(folder / "b"), growing(folder / "c", Appears::kGrowing);
    growing.append(to_bytes("line"));
    growing.flush();
    finished.commit();
    const bool that_of_b = remove_temporary_files() == 1;
    const bool no_other = remove_temporary_files() == 0;
    ::_exit(that_of_b && no_other ? 0 : 1);
  };
  EXPECT_EXIT(end_in_the_middle(), testing::ExitedWithCode(0), "");
  EXPECT_EQ(list_directory(folder.path()).size(), 2U);
}

constexpr std::chrono::milliseconds kNow{0}, kShort{50};

TEST(FolderLock, IsHeldByOneAtATime) {
  const TempFolder folder;
  std::optional<FolderLock> first(std::in_place, folder / "", kNow);
  EXPECT_TRUE(first->held());
  const Stopwatch watch;
  EXPECT_FALSE(FolderLock(folder / "", kShort).held());
  EXPECT_GE(watch.seconds(), 0.05) << "it waits as long as it was told to";
  first.reset();
  EXPECT_TRUE(FolderLock(folder / "", kNow).held());
}

TEST(FolderLock, IsNotHeldWhereThereIsNoFolder) {
  const TempFolder folder;
  EXPECT_FALSE(FolderLock(folder / "missing", kShort).held());
  EXPECT_FALSE(FolderLock(folder.write("file", "x"), kShort).held());
}

TEST(FolderLock, TellsThatItIsAnothers) {
  const TempFolder folder;
  const FolderLock first(folder / "", kNow);
  EXPECT_FALSE(first.is_anothers());
  EXPECT_TRUE(FolderLock(folder / "", kShort).is_anothers());
  EXPECT_FALSE(FolderLock(folder / "missing", kShort).is_anothers());
}

TEST(LeftOver, IsATemporaryFileThatNobodyHolds) {
  const TempFolder folder;
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

// Every lock fails with `error`, as on Lustre without flock, or on NFS without its lock service.
class WithoutLocks final : public FileFaults {
 public:
  explicit WithoutLocks(int error) : error_(error), before_(set_file_faults(this)) {}
  ~WithoutLocks() override { set_file_faults(before_); }
  WithoutLocks(const WithoutLocks&) = delete;
  WithoutLocks& operator=(const WithoutLocks&) = delete;

  int before(FileOperation operation, const std::filesystem::path&, std::uint64_t, std::size_t&) override {
    return operation == FileOperation::kLock ? error_ : 0;
  }

 private:
  int error_;
  FileFaults* before_;
};

TEST(FileSystemWithoutLocks, IsWrittenToAndNamedOnce) {
  for (const int error : {ENOSYS, ENOLCK, EOPNOTSUPP, ENOTSUP}) {
    const TempFolder folder;
    const WithoutLocks faults(error);
    testing::internal::CaptureStderr();
    for (const char* name : {"a", "b", "a"}) write_file_atomically(folder / name, "text");
    FileWriter(folder / "growing", Appears::kGrowing).append(std::as_bytes(std::span("x", 1)));
    const FolderLock lock(folder.path(), kShort);
    EXPECT_FALSE(lock.held() || lock.is_anothers());
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::filesystem::file_size(folder / "a"), 4U);
    EXPECT_EQ(said.find("headrace: warning: "), said.rfind("headrace: warning: ")) << said;
    EXPECT_NE(said.find(folder.path().filename().string() + " has no locks"), std::string::npos) << said;
  }
  const TempFolder folder;
  const WithoutLocks broken(EIO);
  EXPECT_THROW(write_file_atomically(folder / "a", "text"), DataError)
      << "a lock that fails otherwise is an error";
}

}  // namespace
}  // namespace headrace::test
