// A consumer killed at any moment and resumed with other replicas: every record once, every batch as it would have
// been.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/ledger.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace {
namespace {

constexpr std::uint64_t kKilledRecords = 300, kKilledEpochs = 3;
#ifdef HEADRACE_SANITIZED  // where a process takes long to begin
constexpr int kKills = 40;
#else
constexpr int kKills = 200;
#endif

Dataset dataset() {
  return Dataset::from(test::noise_images(kKilledRecords, 8, 8))
      .shuffle()
      .map(pad_crop(8, 2) | flip())
      .batch({.global = 16});
}

// What a consumer wrote down of one batch, in one line.
struct Line {
  LoaderState next;  // to go on after it
  std::uint64_t epoch = 0, step = 0;
  std::string sha256;
  std::vector<std::uint64_t> records;
};

// A killed writer may leave a part of a line.
void drop_torn_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty() || text.ends_with('\n')) return;
  write_file_atomically(path, std::string_view(text).substr(0, text.rfind('\n') + 1));
}

std::vector<Line> read_lines(const std::filesystem::path& path) {
  std::vector<Line> lines;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    Line line;
    words >> line.next.fingerprint >> line.next.sequence >> line.epoch >> line.step >> line.sha256;
    for (std::uint64_t record = 0; words >> record;) line.records.push_back(record);
    lines.push_back(std::move(line));
  }
  return lines;
}

void consume(const std::filesystem::path& path, int replicas, int threads, std::optional<LoaderState> start) {
  DeviceGroup devices = test::test_devices(replicas);
  Loader loader(dataset(), devices, {.seed = 5, .epochs = kKilledEpochs, .threads = threads, .start = start});
  StreamDigest digest(devices);
  while (true) {
    std::vector<Batch> shares;
    for (int r = 0; r < replicas; ++r) {
      std::optional<Batch> batch = loader.next(r);
      if (!batch) return;
      shares.push_back(std::move(*batch));
    }
    const BatchDigest of = digest.add(shares);
    const LoaderState state = loader.state();
    std::ostringstream line;
    line << state.fingerprint << ' ' << state.sequence << ' ' << of.epoch << ' ' << of.step << ' ' << of.sha256;
    for (const Batch& share : shares) {
      for (const std::uint64_t record : share.records()) line << ' ' << record;
    }
    append_to_file(path, line.str() + "\n");
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
}

// The consumer is this program, started again: oneTBB's workers do not survive fork().
constexpr const char* kConsumerPath = "HEADRACE_KILLED_CONSUMER_PATH";
constexpr const char* kConsumerAttempt = "HEADRACE_KILLED_CONSUMER_ATTEMPT";

TEST(KilledConsumer, DISABLED_Consumes) {
  const char* const path = std::getenv(kConsumerPath);
  if (path == nullptr) GTEST_SKIP() << "run by the other test of this suite";
  const int attempt = std::stoi(std::getenv(kConsumerAttempt));
  const std::vector<Line> lines = read_lines(path);
  const std::optional<LoaderState> start = lines.empty() ? std::nullopt : std::optional(lines.back().next);
  append_to_file(std::string(path) + ".begun", "x");
  consume(path, 1 << attempt % 4, 1 + attempt % 3, start);
}

pid_t start_consumer(const std::filesystem::path& path, int attempt) {
  const std::string number = std::to_string(attempt);
  const pid_t child = fork();
  if (child != 0) return child;
  setenv(kConsumerPath, path.c_str(), 1);
  setenv(kConsumerAttempt, number.c_str(), 1);
  for (const char* variable : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) unsetenv(variable);
  const int null = open("/dev/null", O_WRONLY);
  dup2(null, STDOUT_FILENO);
  execl("/proc/self/exe", "consumer", "--gtest_also_run_disabled_tests",
        "--gtest_filter=KilledConsumer.DISABLED_Consumes", nullptr);
  _exit(127);
}

// True where the consumer came to the end. It is killed shortly after it began, and every second time after it has
// handed out a batch: where a loader is slow to begin, it would otherwise never get further.
bool run_and_kill(const std::filesystem::path& path, int attempt, Philox& random) {
  drop_torn_line(path);
  const std::filesystem::path begun = path.string() + ".begun";
  std::filesystem::remove(begun);
  const auto lines = [&] { return std::filesystem::exists(path) ? std::filesystem::file_size(path) : 0; };
  const auto before = lines();
  const pid_t child = start_consumer(path, attempt);
  int status = 0;
  bool ended = false;
  const Stopwatch watch;
  while (!ended && !(attempt % 2 == 0 ? std::filesystem::exists(begun) : lines() > before) &&
         watch.seconds() < 30) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    ended = waitpid(child, &status, WNOHANG) == child;
  }
  if (!ended) {
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(20'000)));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) ADD_FAILURE() << "it failed: " << WEXITSTATUS(status);
  return WIFEXITED(status);
}

TEST(KilledConsumer, ResumesToTheSameStreamEachRecordOnce) {
  const auto expected = test::cpu_digests_of(dataset(), {.seed = 5, .epochs = kKilledEpochs, .threads = 1});
  const test::TempFolder folder;
  Philox random({.seed = 2});
  int kills = 0;
  for (int run = 0; kills < kKills; ++run) {
    const auto path = folder / std::to_string(run);
    for (int attempt = 0; !run_and_kill(path, run + attempt, random); ++attempt) {
      ASSERT_FALSE(HasFailure());
      ++kills;
    }
    const std::vector<Line> lines = read_lines(path);
    ASSERT_EQ(lines.size(), expected.size());
    Ledger ledger;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      ASSERT_EQ(lines[i].sha256, expected[i].sha256) << "batch " << i << " of run " << run;
      for (const std::uint64_t record : lines[i].records) {
        ledger.add(LedgerEntry{.epoch = lines[i].epoch, .step = lines[i].step, .record = record});
      }
    }
    for (std::uint64_t epoch = 0; epoch < kKilledEpochs; ++epoch) {
      ASSERT_EQ(ledger.find_breach(epoch, EpochContents::all(kKilledRecords)), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace headrace
