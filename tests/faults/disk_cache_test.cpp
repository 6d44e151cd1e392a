// The disk cache on a file system that fails: at every single call, with every error that calls give.
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>

#include "headrace/cache/disk_cache.h"
#include "headrace/devices/base/system_file.h"
#include "headrace/tests/support/cache_samples.h"
#include "headrace/tests/support/long_run.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

constexpr std::uint64_t kCachedRecords = 1200;  // some megabytes: several writes
constexpr int kManyCalls = 300;  // more than there are, of reads apart: those are thousands, all alike

// Fails, or kills the process, at the n-th call of one kind below a folder; then at all later ones, too.
class FailFrom final : public FileFaults {
 public:
  enum class Then { kFail, kShortWrite, kKill };
  FailFrom(FileOperation operation, int call, int error, Then then = Then::kFail)
      : operation_(operation), call_(call), error_(error), then_(then) {
    before_ = set_file_faults(this);
  }
  ~FailFrom() override { set_file_faults(before_); }
  FailFrom(const FailFrom&) = delete;
  FailFrom& operator=(const FailFrom&) = delete;

  int before(FileOperation operation, const std::filesystem::path&, std::uint64_t, std::size_t& bytes) override {
    if (operation != operation_) return 0;
    const int call = calls_.fetch_add(1);
    if (call < call_) return 0;
    if (then_ == Then::kShortWrite && call == call_) {
      bytes = bytes / 2 + 1;  // the rest fails: the disk is full
      return 0;
    }
    if (then_ == Then::kKill) {
      std::raise(SIGKILL);
    }
    return error_;
  }
  int calls() const { return calls_.load(); }

 private:
  FileOperation operation_;
  int call_, error_;
  Then then_;
  std::atomic<int> calls_{0};
  FileFaults* before_;
};

const Bytes& sample(std::uint64_t record) {
  static const std::vector<Bytes> all = [] {
    std::vector<Bytes> samples;
    for (std::uint64_t i = 0; i < kCachedRecords; ++i) samples.push_back(content(i));
    return samples;
  }();
  return all[record];
}

// Each record is right or absent, and can be computed again.
void serve(const std::filesystem::path& folder, std::string* trouble = nullptr) {
  DiskCache cache(folder, {.segment_bytes = 2 << 20});
  cache.bind(7, kCachedRecords);
  for (int pass = 0; pass < 2; ++pass) {
    for (std::uint64_t i = 0; i < kCachedRecords; ++i) {
      const Bytes there = found(cache, i);
      if (there.empty()) {
        cache.insert(i, sample(i));
      } else {
        ASSERT_EQ(there, sample(i)) << i;
      }
    }
  }
  if (trouble != nullptr) *trouble = cache.trouble();
}

int calls_of(FileOperation operation) {
  const TempFolder folder;
  const FailFrom counting(operation, 1 << 30, 0);
  serve(folder / "cache");
  return counting.calls();
}

struct Call {
  FileOperation operation;
  const char* name;
};

class DiskCacheFaults : public testing::TestWithParam<Call> {};

TEST_P(DiskCacheFaults, NoErrorAtAnyCallGivesAWrongSample) {
  const int calls = std::min(calls_of(GetParam().operation), long_or(kManyCalls, 16));
  ASSERT_GT(calls, 0);
  for (int call = 0; call < calls; ++call) {
    for (const int error : {ENOSPC, EIO, EROFS}) {
      const TempFolder folder;
      std::string trouble;
      {
        const FailFrom faults(GetParam().operation, call, error);
        serve(folder / "cache", &trouble);
      }
      if (GetParam().operation == FileOperation::kWrite && call == 0) {
        EXPECT_THAT(trouble, HasSubstr("stores nothing more"));
      }
      serve(folder / "cache", &trouble);  // the disk is well again
      EXPECT_EQ(trouble, "") << call;
    }
  }
}

TEST_P(DiskCacheFaults, AKillAtAnyCallLeavesASoundCache) {
  const int calls = std::min(calls_of(GetParam().operation), long_or(kManyCalls, 12));
  for (int call = 0; call < calls; ++call) {
    const TempFolder folder;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const FailFrom faults(GetParam().operation, call, 0, FailFrom::Then::kKill);
      serve(folder / "cache");
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << "call " << call << " was not reached";
    std::string trouble;
    serve(folder / "cache", &trouble);
    EXPECT_EQ(trouble, "");
  }
}

INSTANTIATE_TEST_SUITE_P(EveryCall, DiskCacheFaults,
                         testing::Values(Call{FileOperation::kOpen, "Open"}, Call{FileOperation::kRead, "Read"},
                                         Call{FileOperation::kWrite, "Write"},
                                         Call{FileOperation::kRename, "Rename"}),
                         [](const auto& call) { return std::string(call.param.name); });

TEST(DiskCacheFault, AWriteCutShortByAFullDiskIsNoEntry) {
  for (int call = 0; call < 6; ++call) {
    const TempFolder folder;
    {
      const FailFrom faults(FileOperation::kWrite, call, ENOSPC, FailFrom::Then::kShortWrite);
      serve(folder / "cache");
    }
    std::string trouble;
    serve(folder / "cache", &trouble);
    EXPECT_EQ(trouble, "");
  }
}

TEST(DiskCacheFault, AReadOnlyFolderServesWhatItHolds) {
  const TempFolder folder;
  serve(folder / "cache");
  const FailFrom faults(FileOperation::kWrite, 0, EROFS);
  const FailFrom renames(FileOperation::kRename, 0, EROFS);
  DiskCache cache(folder / "cache");
  cache.bind(7, kCachedRecords);
  EXPECT_EQ(cache.counters().records, kCachedRecords);
  EXPECT_TRUE(holds(cache, 5));
  EXPECT_EQ(cache.trouble(), "");
}

}  // namespace
}  // namespace headrace::test
