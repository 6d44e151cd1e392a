// A trainer killed at random steps and resumed with 1, 2, 4 or 8 replicas: its net has seen every record of every
// epoch once, in the batches and with the results of a training that nobody disturbed. The ledger is what the loss
// was given: a callback keeps it in the checkpoints, so that it ends where the model's state does.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "headrace/pipeline/ledger.h"
#include "headrace/tests/faults/killed_program.h"
#include "headrace/tests/support/long_run.h"
#include "headrace/tests/support/temp_folder.h"
#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/checkpoints.h"

namespace headrace {
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
