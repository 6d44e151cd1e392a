// The fetch cache among processes: side by side, killed, with other data a day later.
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/http_server.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/long_run.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

class FetchCacheProcesses : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kShards = 4;

  FetchCacheProcesses() {
    serve("set");
    ::setenv("AWS_ENDPOINT_URL", server_.url().c_str(), 1);
    ::setenv("HEADRACE_INDEX_FOLDER", "off", 1);
  }
  ~FetchCacheProcesses() override {
    ::unsetenv("AWS_ENDPOINT_URL");
    ::unsetenv("HEADRACE_INDEX_FOLDER");
  }

  void serve(const std::string& name, std::uint64_t seed = 0, const std::string& etag = "\"1\"") {
    bytes_ = 0;
    for (std::uint64_t shard = 0; shard < kShards; ++shard) {
      TarBuilder tar;
      for (std::uint64_t i = 0; i < 20; ++i) {
        Bytes image = encode_jpeg(make_picture(32, 32, 3, seed + 100 * shard + i));
        image.resize(image.size() + 200'000);  // which no decoder reads
        tar.add(std::to_string(i) + ".jpg", image).add(std::to_string(i) + ".cls", to_bytes("1"));
      }
      const Bytes bytes = tar.finish();
      bytes_ += bytes.size();
      server_.serve("/bucket/" + name + "/" + std::to_string(shard) + ".tar",
                    {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, etag);
    }
  }

  std::vector<std::string> digest(const std::string& name, const std::string& budget = "64M") const {
    std::vector<std::string> words{HEADRACE_BINARY,
                                   "digest",
                                   "--pipeline",
                                   "jpeg-train",
                                   "--no-index",
                                   "--window",
                                   "16",
                                   "--epochs",
                                   "1",
                                   "--global-batch",
                                   "8",
                                   "--replicas",
                                   "1",
                                   "--data",
                                   "s3://bucket/" + name + "/"};
    if (!budget.empty()) {
      for (const std::string& word :
           {std::string("--fetch-cache"), (folder_ / "cache").string(), std::string("--fetch-budget"), budget})
        words.push_back(word);
    }
    return words;
  }
  std::string digest_of(const std::string& name, const std::string& budget = "64M") const {
    const CommandResult result = run_command(digest(name, budget));
    EXPECT_EQ(result.status, 0) << result.errors;
    return result.output;
  }

  TempFolder folder_;
  HttpServer server_;
  std::uint64_t bytes_ = 0;
};

TEST_F(FetchCacheProcesses, FetchEachByteOnceBetweenThem) {
  const std::string expected = digest_of("set", "");
  server_.slow_down(std::chrono::milliseconds(5), 20'000'000);
  const std::uint64_t before = server_.sent_bytes();
  std::thread other([&] { EXPECT_EQ(digest_of("set"), expected); });
  EXPECT_EQ(digest_of("set"), expected);
  other.join();
  EXPECT_LT(server_.sent_bytes() - before, bytes_ + bytes_ / 5) << "of " << bytes_;
  const std::uint64_t later = server_.sent_bytes();
  EXPECT_EQ(digest_of("set"), expected);
  EXPECT_LT(server_.sent_bytes() - later, bytes_ / 20);
}

TEST_F(FetchCacheProcesses, ThatAreKilledCostTimeAlone) {
  const std::string expected = digest_of("set", "");
  server_.slow_down(std::chrono::milliseconds(2), 60'000'000);
  const std::uint64_t before = server_.sent_bytes();
  const int kills = long_or(50, 10);
  for (int kill = 0; kill < kills; ++kill) {
    std::vector<std::string> words = digest("set");
    words.insert(words.begin(), {"timeout", "-s", "KILL", "0." + std::to_string(10 + kill * 83 % 40)});
    run_command(words);
  }
  EXPECT_EQ(digest_of("set"), expected);
  EXPECT_EQ(digest_of("set"), expected);
  // A killed process loses what it had not stored yet.
  EXPECT_LT(server_.sent_bytes() - before, bytes_ + static_cast<std::uint64_t>(kills) * (4U << 20));
}

// For other data the files that no process used for a day go, the oldest first; before that they stay.
TEST_F(FetchCacheProcesses, MakeRoomForOtherDataAfterADay) {
  const std::string expected = digest_of("set", "16M");
  serve("other");
  const auto fetched = [&] {
    const std::uint64_t before = server_.sent_bytes();
    EXPECT_EQ(digest_of("other", "16M"), expected);
    return server_.sent_bytes() - before;
  };
  fetched();
  EXPECT_GT(fetched(), bytes_ * 8 / 10) << "the first data were thrown out";
  const auto yesterday = std::filesystem::file_time_type::clock::now() - std::chrono::hours(25);
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache"))
    std::filesystem::last_write_time(entry.path(), yesterday);
  fetched();
  EXPECT_LT(fetched(), bytes_ / 2);
  std::uint64_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) files += entry.file_size();
  EXPECT_LE(files, 16U << 20);
}

TEST_F(FetchCacheProcesses, FetchAFileThatHasChanged) {
  const std::string before = digest_of("set");
  serve("set", 1000, "\"2\"");
  const std::string after = digest_of("set", "");
  EXPECT_NE(after, before);
  EXPECT_EQ(digest_of("set"), after);
}

TEST_F(FetchCacheProcesses, NeedAFolderAndABudget) {
  EXPECT_EQ(run_command(digest("set", "1M")).status, 2);
  std::vector<std::string> words = digest("set", "");
  words.insert(words.end(), {"--fetch-budget", "64M"});
  EXPECT_EQ(run_command(words).status, 2);
  ::setenv("HEADRACE_FETCH_CACHE", (folder_ / "cache").c_str(), 1);
  const CommandResult none = run_command(digest("set", ""));
  ::setenv("HEADRACE_FETCH_BUDGET", "much", 1);
  const CommandResult wrong = run_command(digest("set", ""));
  ::setenv("HEADRACE_FETCH_BUDGET", "64M", 1);
  const CommandResult right = run_command(digest("set", ""));
  ::unsetenv("HEADRACE_FETCH_CACHE");
  ::unsetenv("HEADRACE_FETCH_BUDGET");
  EXPECT_EQ(none.status, 2) << none.errors;
  EXPECT_NE(none.errors.find("HEADRACE_FETCH_BUDGET"), std::string::npos) << none.errors;
  EXPECT_EQ(wrong.status, 2) << wrong.errors;
  EXPECT_EQ(right.status, 0) << right.errors;
  EXPECT_FALSE(std::filesystem::is_empty(folder_ / "cache"));
}

}  // namespace
}  // namespace headrace::test
