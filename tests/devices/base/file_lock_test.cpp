#include <cerrno>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/file_lock.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/system_file.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

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
