// The fetch cache: the same stream with it and without, fewer bytes fetched, and what goes wrong costs time alone.
#include "headrace/devices/base/system_file.h"
#include "headrace/tests/pipeline/sources/remote/remote_fixture.h"

namespace headrace::test {
namespace {

class FetchCaches : public RemoteTest {
 protected:
  static constexpr std::uint64_t kShards = 4, kBudget = 64 << 20;

  FetchCaches() {
    for (std::uint64_t shard = 0; shard < kShards; ++shard) {
      TarBuilder tar;
      for (std::uint64_t i = 0; i < 24; ++i) {
        Bytes image = noisy_jpeg(100 * shard + i);
        image.resize(image.size() + 150'000 + 1000 * i);  // which no decoder reads
        tar.add(std::to_string(i) + ".jpg", image)
            .add(std::to_string(i) + ".cls", to_bytes(std::to_string(shard)));
      }
      const Bytes bytes = tar.finish();
      bytes_ += bytes.size();
      put("set/train-" + std::to_string(shard) + ".tar", bytes);
    }
  }
  ~FetchCaches() override { remote::set_fetch_cache({}); }

  void keep(std::uint64_t budget = kBudget) {
    remote::set_fetch_cache({.folder = folder_ / "cache", .budget_bytes = budget});
  }

  static Dataset indexed(const std::filesystem::path& path) { return decoded(path); }
  static Dataset by_shards(const std::filesystem::path& path) {
    return Dataset::from(open_source(path, Split::kTrain, {.indexed = false}))
        .shuffle_shards({.window = 32, .shards = 3})
        .decode({.height = kSide, .width = kSide})
        .batch({.global_batch = 8});
  }
  // Returns the bytes that were fetched meanwhile.
  template <typename Do>
  std::uint64_t fetched(const Do& act) const {
    const std::uint64_t before = server_.sent_bytes();
    act();
    return server_.sent_bytes() - before;
  }

  TempFolder folder_;
  std::uint64_t bytes_ = 0;
};

TEST_F(FetchCaches, LeaveEveryBitAndFetchNothingTwice) {
  const auto local = stream_of(indexed(local_ / "set"), {.epochs = 2});
  const auto local_shards = stream_of(by_shards(local_ / "set"), {.epochs = 2});
  keep();
  EXPECT_LT(fetched([&] { EXPECT_EQ(stream_of(by_shards(s3("set/")), {.epochs = 2}), local_shards); }),
            bytes_ + bytes_ / 10);
  // What is asked for now is there, whoever asks; a listing and the heads of files are not kept.
  EXPECT_LT(fetched([&] { EXPECT_EQ(stream_of(by_shards(s3("set/")), {.epochs = 2}), local_shards); }),
            bytes_ / 20);
  EXPECT_LT(fetched([&] { EXPECT_EQ(stream_of(indexed(s3("set/")), {.epochs = 2}), local); }), bytes_ / 20);
  keep();  // opens the folder anew, as another process does
  const std::uint64_t read = remote::counters().cached_bytes;
  EXPECT_LT(
      fetched([&] { EXPECT_EQ(stream_of(by_shards(s3("set/")), {.epochs = 1}).front(), local_shards.front()); }),
      bytes_ / 20);
  EXPECT_GE(remote::counters().cached_bytes - read, bytes_ * 9 / 10);
}

TEST_F(FetchCaches, AreFilledByRandomReads) {
  const auto local = stream_of(indexed(local_ / "set"), {.epochs = 3});
  const Dataset remote = indexed(s3("set/"));
  keep();
  const Dataset kept = indexed(s3("set/"));
  EXPECT_LT(fetched([&] { EXPECT_EQ(stream_of(kept, {.epochs = 3}), local); }), bytes_ + bytes_ / 4);
  EXPECT_LT(fetched([&] { EXPECT_EQ(stream_of(kept, {.epochs = 3}), local); }), bytes_ / 20);
}

// A quarter of the set is there for good: nothing is thrown out for what comes later.
TEST_F(FetchCaches, KeepAFixedShareThatTheirBudgetHas) {
  constexpr std::uint64_t kSmall = 16 << 20;
  std::uint64_t bytes = bytes_;
  for (std::uint64_t shard = 0; bytes < 4 * kSmall; ++shard) {  // the set as often as makes four times the budget
    const Bytes again = to_bytes(text_of(local_ / ("set/train-" + std::to_string(shard % kShards) + ".tar")));
    bytes += again.size();
    put("set/train-1" + std::to_string(shard) + ".tar", again);
  }
  const auto local = stream_of(by_shards(local_ / "set"), {.epochs = 1});
  keep(kSmall);
  stream_of(by_shards(s3("set/")), {.epochs = 1});
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_LT(fetched([&] { EXPECT_EQ(stream_of(by_shards(s3("set/")), {.epochs = 1}), local); }),
              bytes * 77 / 100);
  }
  std::uint64_t files = 0;
  for (const auto& entry : list_directory(folder_ / "cache")) files += entry.size;
  EXPECT_LE(files, kSmall);
}

// Small files fill the table of each of the cache's files before its bytes.
TEST_F(FetchCaches, KeepManySmallFiles) {
  constexpr std::uint64_t kImages = 500;
  for (std::uint64_t i = 0; i < kImages; ++i)
    put("images/" + std::string(1, static_cast<char>('a' + i % 2)) + "/" + std::to_string(i) + ".jpg",
        noisy_jpeg(i));
  const auto local = stream_of(indexed(local_ / "images"), {.epochs = 1});
  keep(16 << 20);
  stream_of(indexed(s3("images/")), {.epochs = 1});
  const std::uint64_t before = server_.request_count();
  EXPECT_EQ(stream_of(indexed(s3("images/")), {.epochs = 1}), local);
  EXPECT_LT(server_.request_count() - before, kImages / 2);  // listings among them
}

// Two readers of one process (tests/tools/remote has two processes): each byte is fetched by one of them.
TEST_F(FetchCaches, AreSharedByWhoReadsAtTheSameTime) {
  const auto local = stream_of(by_shards(local_ / "set"), {.epochs = 1});
  server_.slow_down(std::chrono::milliseconds(5), 20'000'000);
  keep();
  const Dataset one = by_shards(s3("set/"));
  const std::uint64_t bytes = fetched([&] {
    std::thread other([&] { EXPECT_EQ(stream_of(by_shards(s3("set/")), {.epochs = 1}), local); });
    EXPECT_EQ(stream_of(one, {.epochs = 1}), local);
    other.join();
  });
  EXPECT_LT(bytes, bytes_ + bytes_ / 5);
}

TEST_F(FetchCaches, TakeNothingWithoutAVersion) {
  server_.serve("/set/train-0.tar", text_of(local_ / "set/train-0.tar"), "");
  keep();
  const Dataset remote = indexed(at("set/train-0.tar"));
  EXPECT_EQ(stream_of(remote), stream_of(indexed(local_ / "set/train-0.tar")));
  EXPECT_TRUE(list_directory(folder_ / "cache").empty());
}

TEST_F(FetchCaches, ReadAnewWhatIsDamaged) {
  const auto local = stream_of(by_shards(local_ / "set"), {.epochs = 1});
  keep();
  stream_of(by_shards(s3("set/")), {.epochs = 1});
  for (const auto& entry : list_directory(folder_ / "cache")) {
    for (std::uint64_t at = 4096; at < entry.size; at += 60'000)
      TempFolder::patch(entry.path, at, std::byte{0x5A});
  }
  EXPECT_GT(fetched([&] { EXPECT_EQ(stream_of(by_shards(s3("set/")), {.epochs = 1}), local); }), bytes_ / 2);
  EXPECT_LT(fetched([&] { EXPECT_EQ(stream_of(by_shards(s3("set/")), {.epochs = 1}), local); }), bytes_ / 20);
}

TEST_F(FetchCaches, LeaveOthersFilesAlone) {
  folder_.write("cache/000001.pieces", "somebody's own");
  keep();
  stream_of(by_shards(s3("set/")), {.epochs = 1});
  EXPECT_EQ(text_of(folder_ / "cache/000001.pieces"), "somebody's own");
  EXPECT_LT(fetched([&] { stream_of(by_shards(s3("set/")), {.epochs = 1}); }), bytes_ / 20);
}

// A disk that is full, or breaks, from some call on.
class FailingDisk final : public FileFaults {
 public:
  FailingDisk(FileOperation operation, int error, int after) : operation_(operation), error_(error), left_(after) {
    before_ = set_file_faults(this);
  }
  ~FailingDisk() override { set_file_faults(before_); }
  int before(FileOperation operation, const std::filesystem::path& path, std::uint64_t,
             std::size_t& bytes) override {
    if (operation != operation_ || path.string().find(".pieces") == std::string::npos) return 0;
    if (left_.fetch_sub(1) > 0) return 0;
    if (error_ == 0) bytes = bytes / 2 + 1;
    return error_;
  }

 private:
  FileOperation operation_;
  int error_;
  std::atomic<int> left_;
  FileFaults* before_;
};

TEST_F(FetchCaches, ThatFailCostTimeAlone) {
  const auto local = stream_of(by_shards(local_ / "set"), {.epochs = 1});
  for (const auto& [operation, error] :
       {std::pair(FileOperation::kWrite, ENOSPC), std::pair(FileOperation::kWrite, 0),
        std::pair(FileOperation::kRead, EIO), std::pair(FileOperation::kOpen, EACCES),
        std::pair(FileOperation::kLock, ENOLCK), std::pair(FileOperation::kRename, ENOSPC)}) {
    for (const int after : {0, 1, 10}) {
      std::filesystem::remove_all(folder_ / "cache");
      remote::set_fetch_cache({});
      keep();
      const FailingDisk disk(operation, error, after);
      for (int epoch = 0; epoch < 2; ++epoch) {
        EXPECT_EQ(stream_of(by_shards(s3("set/")), {.epochs = 1}), local)
            << static_cast<int>(operation) << " " << error << " after " << after;
      }
    }
  }
}

TEST_F(FetchCaches, LetRequestsFail) {
  const auto local = stream_of(by_shards(local_ / "set"), {.epochs = 2});
  keep();
  fail_some_requests();
  EXPECT_EQ(stream_of(by_shards(s3("set/")), {.epochs = 2}), local);
}

TEST_F(FetchCaches, RefuseWhatCannotBe) {
  EXPECT_THROW(keep(1000), ConfigError);
  folder_.write("cache", "a file");
  EXPECT_THROW(keep(), Error);
}

}  // namespace
}  // namespace headrace::test
