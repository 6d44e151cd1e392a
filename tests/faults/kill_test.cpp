// A test that is killed: this program, started again for one disabled test, since oneTBB's workers do not survive
// fork().
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bit>
#include <nlohmann/json.hpp>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/ledger.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/long_run.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"

namespace headrace::test {

// What the killed test was started for.
struct KilledPart {
  std::filesystem::path path;
  int attempt = 0;

  // Returns nothing where the test runs by itself.
  static std::optional<KilledPart> of_this_process() {
    const char* const path = std::getenv("HEADRACE_KILLED_PATH");
    if (path == nullptr) return std::nullopt;
    return KilledPart{.path = path, .attempt = std::stoi(std::getenv("HEADRACE_KILLED_ATTEMPT"))};
  }
  std::filesystem::path begun() const { return path.string() + ".begun"; }
  void begin() const { append_to_file(begun(), "x"); }
};

inline pid_t start_killed_part(const std::string& test, const KilledPart& part) {
  const std::string filter = "--gtest_filter=" + test, number = std::to_string(part.attempt);
  const pid_t child = fork();
  if (child != 0) return child;
  setenv("HEADRACE_KILLED_PATH", part.path.c_str(), 1);
  setenv("HEADRACE_KILLED_ATTEMPT", number.c_str(), 1);
  for (const char* variable : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) unsetenv(variable);
  dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
  execl("/proc/self/exe", "killed", "--gtest_also_run_disabled_tests", filter.c_str(), nullptr);
  _exit(127);
}

// True where it came to its end. It is killed shortly after it began, and every second time after it has got
// further, as `progress` says: where it is slow to begin, it would otherwise never get on.
inline bool run_and_kill(const std::string& test, const KilledPart& part,
                         const std::function<std::uintmax_t()>& progress, Philox& random) {
  std::filesystem::remove(part.begun());
  const auto before = progress();
  const pid_t child = start_killed_part(test, part);
  int status = 0;
  bool ended = false;
  const Stopwatch watch;
  while (!ended && !(part.attempt % 2 == 0 ? std::filesystem::exists(part.begun()) : progress() != before) &&
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

}  // namespace headrace::test

// A consumer killed at any moment and resumed with other replicas: every record once, every batch as it would have
// been.

namespace headrace {
namespace {

constexpr std::uint64_t kKilledRecords = 300, kKilledEpochs = 3;
#ifdef HEADRACE_SANITIZED  // where a process takes long to begin
constexpr int kKills = 40, kKillsOfShards = 20;
#else
constexpr int kKills = 200, kKillsOfShards = 50;
#endif

Dataset batched(const Dataset& data) { return data.map(pad_crop(8, 2) | flip()).batch({.global_batch = 16}); }

// Of the shards beside the list of batches, if there are any.
Dataset dataset(const std::filesystem::path& path) {
  const std::filesystem::path shards = path.parent_path() / "shards";
  if (!std::filesystem::exists(shards))
    return batched(Dataset::from(test::noise_images(kKilledRecords, 8, 8)).shuffle());
  return batched(Dataset::from(web_dataset(shards, {.indexed = false}))
                     .shuffle_shards({.window = 64, .shards = 3})
                     .decode({.height = 8, .width = 8}));
}

// 300 images in seven archives of different lengths; returns the numbers of a stream's records.
std::vector<std::uint64_t> write_shards(const test::TempFolder& folder) {
  std::vector<std::uint64_t> numbers;
  std::size_t image = 0;
  for (std::uint64_t shard = 0; shard < 7; ++shard) {
    test::TarBuilder tar;
    for (std::uint64_t i = 0; i < 10 * shard + (shard < 6 ? 8 : 42); ++i, ++image) {
      tar.add(std::to_string(i) + ".png", test::encode_png(test::make_picture(8, 8, 3, image)));
      tar.add(std::to_string(i) + ".cls", test::to_bytes("1"));
      numbers.push_back(shard << 28 | i);
    }
    folder.write("shards/" + std::to_string(shard) + ".tar", tar.finish());
  }
  EXPECT_EQ(numbers.size(), kKilledRecords);
  return numbers;
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
    const std::size_t state = text.find(';');
    std::istringstream words(text.substr(0, state));
    Line line;
    line.next = LoaderState::parse(std::string_view(text).substr(state + 1));
    words >> line.epoch >> line.step >> line.sha256;
    for (std::uint64_t record = 0; words >> record;) line.records.push_back(record);
    lines.push_back(std::move(line));
  }
  return lines;
}

void consume(const std::filesystem::path& path, int replicas, int threads, std::optional<LoaderState> start) {
  DeviceGroup devices = test::test_devices(replicas);
  Loader loader(dataset(path), devices, {.seed = 5, .epochs = kKilledEpochs, .threads = threads, .start = start});
  StreamDigest digest(devices);
  while (true) {
    std::vector<Batch> shares;
    for (int r = 0; r < replicas; ++r) {
      std::optional<Batch> batch = loader.next(r);
      if (!batch) return;
      shares.push_back(std::move(*batch));
    }
    const BatchDigest of = digest.add(shares);
    std::ostringstream line;
    line << of.epoch << ' ' << of.step << ' ' << of.sha256;
    for (const Batch& share : shares) {
      for (const std::uint64_t record : share.records()) line << ' ' << record;
    }
    append_to_file(path, line.str() + ";" + loader.state().serialize() + "\n");
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
}

TEST(KilledConsumer, DISABLED_Consumes) {
  const auto part = test::KilledPart::of_this_process();
  if (!part) GTEST_SKIP() << "run by the other test of this suite";
  const std::vector<Line> lines = read_lines(part->path);
  const std::optional<LoaderState> start = lines.empty() ? std::nullopt : std::optional(lines.back().next);
  part->begin();
  consume(part->path, 1 << part->attempt % 4, 1 + part->attempt % 3, start);
}

void expect_resumed(const test::TempFolder& folder, const std::vector<std::uint64_t>& records, int kills) {
  const auto expected =
      test::cpu_digests_of(dataset(folder / "0"), {.seed = 5, .epochs = kKilledEpochs, .threads = 1});
  Philox random({.seed = 2});
  for (int run = 0; kills > 0; ++run) {
    const auto path = folder / std::to_string(run);
    const auto written = [&] { return std::filesystem::exists(path) ? std::filesystem::file_size(path) : 0; };
    for (int attempt = 0;
         !test::run_and_kill("KilledConsumer.DISABLED_Consumes", {path, run + attempt}, written, random);
         ++attempt) {
      ASSERT_FALSE(testing::Test::HasFailure());
      drop_torn_line(path);
      --kills;
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
      ASSERT_EQ(ledger.find_breach(epoch, {.records = records}), std::nullopt);
    }
  }
}

TEST(KilledConsumer, ResumesToTheSameStreamEachRecordOnce) {
  const test::TempFolder folder;
  expect_resumed(folder, EpochContents::all(kKilledRecords).records, kKills);
}

TEST(KilledConsumer, ResumesWhereShardsStood) {
  const test::TempFolder folder;
  expect_resumed(folder, write_shards(folder), kKillsOfShards);
}

}  // namespace

// A trainer killed at random steps and resumed with 1, 2, 4 or 8 replicas: its net has seen every record of every
// epoch once, in the batches and with the results of a training that nobody disturbed. The ledger is what the loss
// was given: a callback keeps it in the checkpoints, so that it ends where the model's state does.

namespace {

constexpr std::int64_t kTrainedRecords = 100, kTrainedBatch = 16;
constexpr std::uint64_t kTrainedEpochs = 3;

// Each record's label is its number.
Dataset numbered_records() {
  std::vector<float> images;
  std::vector<std::int64_t> numbers;
  Philox random({.seed = 1});
  for (std::int64_t i = 0; i < kTrainedRecords; ++i) {
    numbers.push_back(i);
    for (int k = 0; k < 8; ++k) images.push_back(random.uniform() - 0.5F);
  }
  return test::labelled({8}, images, numbers).shuffle().batch({.global_batch = kTrainedBatch});
}

// The records of a step with their results' bits, and the steps so far as {"records": [...], "results": "..."}.
class TrainedLedger {
 public:
  Loss loss() {
    return host_batch_loss("squares", [this](const HostBatch& batch) {
      for (std::size_t row = 0; row < batch.losses.size(); ++row) {
        const std::int64_t number = batch.labels.as<std::int64_t>()[row];
        const float result = batch.result.as<float>()[row];
        const float error = result - static_cast<float>(number % 7) / 7;
        batch.losses[row] = error * error;
        if (batch.gradient.defined()) batch.gradient.as<float>()[row] = 2 * error;
        const std::lock_guard lock(mutex_);
        step_.emplace_back(number, std::bit_cast<std::uint32_t>(result));
      }
    });
  }
  Callback callback() {
    return {.name = "ledger",
            .on_step = [this](const StepReport&, FitControl&) { end_step(); },
            .every_steps = 1,
            .save = [this] { return steps_.dump(); },
            .restore = [this](const std::string& saved) { steps_ = nlohmann::json::parse(saved); }};
  }
  const nlohmann::json& steps() const { return steps_; }

 private:
  void end_step() {
    std::ranges::sort(step_);
    nlohmann::json records = nlohmann::json::array(), results = nlohmann::json::array();
    for (const auto& [number, bits] : step_) records.push_back(number), results.push_back(bits);
    steps_.push_back({{"records", records}, {"results", results}});
    step_.clear();
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }

  std::mutex mutex_;
  std::vector<std::pair<std::int64_t, std::uint32_t>> step_;
  nlohmann::json steps_ = nlohmann::json::array();
};

// Returns what the ledger and the weights are at the end.
nlohmann::json train(int replicas, const std::filesystem::path& folder) {
  test::Training training(replicas);
  Model model = training.strategy.build(
      [](Graph& g) { return g.dense(g.dropout(g.dense(g.input("image", {8}), 16), 0.25F), 1); }, {.seed = 3});
  TrainedLedger ledger;
  model.compile({.optimizer = adam(1e-2F), .loss = ledger.loss(), .metrics = {}});
  FitOptions options{.epochs = static_cast<int>(kTrainedEpochs),
                     .callbacks = {ledger.callback()},
                     .verbose = 0,
                     .input = {.seed = 5},
                     .step = {.virtual_shards = 8}};
  if (!folder.empty()) {
    options.checkpoints = CheckpointOptions{.folder = folder, .every_steps = 3};
    options.resume = true;
  }
  model.fit(numbered_records(), options);
  return {{"steps", ledger.steps()}, {"weights", model.weights_sha256()}};
}

TEST(KilledTrainer, DISABLED_Trains) {
  const auto part = test::KilledPart::of_this_process();
  if (!part) GTEST_SKIP() << "run by the other test of this suite";
  part->begin();
  const nlohmann::json made = train(1 << part->attempt % 4, part->path / "checkpoints");
  write_file_atomically(part->path / "end.json", made.dump());
}

TEST(KilledTrainer, HasSeenEachRecordOnceAndEndsAsUndisturbed) {
  const nlohmann::json expected = train(1, {});
  const test::TempFolder folder;
  Philox random({.seed = 2});
  const int wanted = test::long_or(200, 16);
  for (int run = 0, kills = 0; kills < wanted; ++run) {
    const auto path = folder / std::to_string(run);
    std::filesystem::create_directories(path);
    const auto newest = [&] {
      const auto found = newest_checkpoint(path / "checkpoints");
      return found ? std::filesystem::hash_value(*found) : 0;
    };
    for (int attempt = 0;
         !test::run_and_kill("KilledTrainer.DISABLED_Trains", {path, run + attempt}, newest, random); ++attempt) {
      ASSERT_FALSE(HasFailure());
      ++kills;
    }
    std::ifstream file(path / "end.json");
    const nlohmann::json made = nlohmann::json::parse(file);
    ASSERT_EQ(made["steps"].size(), expected["steps"].size()) << "run " << run;
    Ledger ledger;
    const std::uint64_t steps = made["steps"].size() / kTrainedEpochs;
    for (std::size_t i = 0; i < made["steps"].size(); ++i) {
      ASSERT_EQ(made["steps"][i], expected["steps"][i]) << "step " << i << " of run " << run;
      for (const std::uint64_t record : made["steps"][i]["records"])
        ledger.add(LedgerEntry{.epoch = i / steps, .step = i % steps, .record = record});
    }
    for (std::uint64_t epoch = 0; epoch < kTrainedEpochs; ++epoch)
      ASSERT_EQ(ledger.find_breach(epoch, EpochContents::all(kTrainedRecords)), std::nullopt);
    EXPECT_EQ(made["weights"], expected["weights"]);
  }
}

}  // namespace
}  // namespace headrace
