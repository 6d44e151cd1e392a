// What `headrace train` does with a folder of checkpoints that is damaged, used, shared or tampered with.
#include <unistd.h>

#include "headrace/devices/base/file_writer.h"
#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tests/tools/recipes/small_data.h"

namespace headrace::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class CheckpointFolder : public ::testing::Test {
 protected:
  void SetUp() override { write_cifar(data_); }

  // At f32, whatever the processor would choose. An option of `more` takes the place of the same one.
  Words training(const Words& more = {}) const {
    Words words{"train",
                "--recipe",
                "cifar10-cnn",
                "--data",
                data_.path().string(),
                "--devices",
                "cpu:1",
                "--seed",
                "3",
                "--epochs",
                "3",
                "--precision",
                "f32",
                "--global-batch",
                "8",
                "--verbose",
                "2",
                "--steps-per-epoch",
                "4",
                "--checkpoint-dir",
                folder().string()};
    for (const std::string& word : more) {
      const auto at = word.starts_with("--") ? std::ranges::find(words, word) : words.end();
      if (at != words.end()) words.erase(at, at + 2);
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  fs::path folder() const { return work_ / "checkpoints"; }
  fs::path checkpoint(int step) const {
    return folder() / ("checkpoint-" + std::to_string(step) + ".safetensors");
  }
  std::string said_by(const Words& more, int status) const {
    const CommandResult result = headrace(training(more));
    EXPECT_EQ(result.status, status) << result.output << result.errors;
    return result.output + result.errors;
  }
  // A sound tensor file that is no checkpoint.
  fs::path write_others(const std::string& name) const {
    const std::string header = R"({"weights":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    std::string length(8, '\0');
    length[0] = static_cast<char>(header.size());
    return work_.write(name, length + header + std::string(4, '\0'));
  }
  static void damage(const fs::path& file) { fs::resize_file(file, fs::file_size(file) - 1); }

  TempFolder data_, work_;
};

TEST_F(CheckpointFolder, NamesEachDamagedFileAndGoesOnFromASoundOne) {
  said_by({}, 0);
  damage(checkpoint(12));
  TempFolder::patch(checkpoint(8), 40, std::byte{'x'});
  const std::string said = said_by({"--resume"}, 0);
  for (const int step : {8, 12}) {
    EXPECT_THAT(said,
                HasSubstr("headrace: warning: passing over a checkpoint: " + checkpoint(step).string() + ": "));
  }
  EXPECT_THAT(said, HasSubstr("Restoring from " + checkpoint(4).string()));
  EXPECT_THAT(said, Not(HasSubstr("Creating a new model")));
}

TEST_F(CheckpointFolder, IsNotBegunAnewWhereNothingCanBeRead) {
  said_by({}, 0);
  for (const int step : {4, 8, 12}) fs::resize_file(checkpoint(step), step == 4 ? 0 : 100);
  const std::string said = said_by({"--resume"}, 1);
  for (const int step : {4, 8, 12}) EXPECT_THAT(said, HasSubstr(checkpoint(step).string()));
  EXPECT_THAT(said, HasSubstr("holds 3 checkpoints, none of which can be read"));
  EXPECT_THAT(said, HasSubstr("hint: restore one of them from a copy; or name another folder"));
  EXPECT_THAT(said, Not(HasSubstr("Creating a new model")));
  EXPECT_EQ(fs::file_size(checkpoint(12)), 100U);
}

TEST_F(CheckpointFolder, MayHoldFilesOfOtherPrograms) {
  const fs::path theirs = write_others("checkpoints/others.safetensors");
  EXPECT_THAT(said_by({"--resume"}, 0), AllOf(HasSubstr("Creating a new model"), Not(HasSubstr("warning"))));
  EXPECT_TRUE(fs::exists(theirs));
}

TEST_F(CheckpointFolder, ThatIsUsedNeedsResume) {
  EXPECT_THAT(said_by({"--stop-after-steps", "4"}, 0), Not(HasSubstr("holds")));
  const FolderContents before = contents_of(folder());
  const std::string said = said_by({}, 2);
  EXPECT_THAT(said,
              HasSubstr("--checkpoint-dir " + folder().string() + " holds checkpoints of an earlier training"));
  EXPECT_THAT(said, HasSubstr("hint: give --resume to go on with it, or name another folder"));
  EXPECT_EQ(contents_of(folder()), before);
  damage(checkpoint(4));
  said_by({}, 2);
  EXPECT_THAT(said_by({"--resume"}, 1), HasSubstr("none of which can be read"));
}

TEST_F(CheckpointFolder, ResumesOnlyTheTrainingItHoldsAndNamesWhatDiffers) {
  said_by({"--stop-after-steps", "4", "--clip-norm", "1", "--checkpoint-best", "val_loss"}, 0);
  const auto resumed = [&](Words more) {
    if (std::ranges::find(more, "--clip-norm") == more.end()) more.insert(more.end(), {"--clip-norm", "1"});
    more.push_back("--resume");
    return headrace(training(more));
  };
  for (const auto& [more, text] : std::vector<std::pair<Words, std::string>>{
           {{"--clip-norm", "0.5"}, "clip.max_norm was 1, is 0.5"},
           {{"--clip-value", "0.5"}, "clip.max_value was 0, is 0.5"},
           {{"--precision", "bf16"}, "precision was f32, is bf16"},
           {{"--seed", "4"}, "seed was 3, is 4"},
           {{"--accumulate", "2"}, "accumulate was 1, is 2"},
           {{"--steps-per-epoch", "5"}, "steps in an epoch was 4, is 5"},
           {{"--global-batch", "16"},
            " of the data was batch(global_batch=8, drop_remainder=false), is batch(global_batch=16, "
            "drop_remainder=false)"},
           {{"--deterministic"}, "virtual shards was 0, is "},
           {{"--average-decay", "0.9"}, "the average of the weights was none, is {"},
           {{"--checkpoint-best", "val_accuracy"},
            "what the best checkpoint is chosen by was val_loss, is val_accuracy"},
           {{"--recipe", "cifar10-resnet18"}, "the optimizer was adam, is sgd"},
           {{"--clip-norm", "2", "--seed", "9"}, "clip.max_norm was 1, is 2; seed was 3, is 9"}}) {
    const CommandResult result = resumed(more);
    EXPECT_EQ(result.status, 2) << text << ": " << result.output << result.errors;
    EXPECT_THAT(result.errors,
                AllOf(HasSubstr(text), HasSubstr(folder().string()), HasSubstr("hint: continue it")));
  }
  // What changes no result, and a longer run.
  const CommandResult result =
      resumed({"--epochs", "5", "--devices", "cpu:2", "--threads", "2", "--prefetch", "1", "--cache", "memory"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("Continuing for 5 epochs instead of 3"));
}

TEST_F(CheckpointFolder, SaysThatNothingIsLeftToTrain) {
  said_by({"--epochs", "2"}, 0);
  for (const std::string epochs : {"1", "2"}) {
    const std::string said = said_by({"--epochs", epochs, "--resume"}, 0);
    EXPECT_THAT(said, AllOf(HasSubstr("Nothing is left to train: 2 epochs done, " + epochs + " wanted"),
                            Not(HasSubstr("Continuing for"))));
  }
  EXPECT_THAT(said_by({"--epochs", "3", "--resume"}, 0), HasSubstr("Continuing for 3 epochs instead of 2"));
}

// Skipping and substituting fill batches with other examples. A run that failed on a bad record may go on either
// way.
TEST_F(CheckpointFolder, KeepsToWhatIsDoneWithBadRecords) {
  said_by({"--epochs", "1"}, 0);
  said_by({"--epochs", "2", "--on-error", "skip", "--resume"}, 0);
  for (const std::string epochs : {"3", "4"}) {
    EXPECT_THAT(said_by({"--epochs", epochs, "--on-error", "substitute", "--resume"}, 2),
                HasSubstr("what is done with a bad record was skip, is substitute"));
    said_by({"--epochs", epochs, "--resume"}, 0);
  }
}

TEST_F(CheckpointFolder, OtherDataAreRefused) {
  said_by({"--stop-after-steps", "4"}, 0);
  write_cifar(data_, 12);
  EXPECT_THAT(said_by({"--resume"}, 2), HasSubstr("stage 1 of the data was source("));
}

TEST_F(CheckpointFolder, HasOneTrainingAtATimeAndNoneAfterAKill) {
  const Words endless = training({"--resume", "--epochs", "1000000", "--checkpoint-every", "1"});
  RunningCommand first(endless, work_ / "first.txt");
  ASSERT_TRUE(first.wait_until([&] { return fs::exists(folder()) && !fs::is_empty(folder()); })) << first.output();
  const CommandResult second = headrace(training({"--resume", "--epochs", "1000000", "--stop-after-steps", "1"}));
  EXPECT_EQ(second.status, 1) << second.output;
  EXPECT_THAT(second.errors, AllOf(HasSubstr(folder().string() + ": another training keeps its checkpoints there"),
                                   HasSubstr("hint: wait until it has ended, or name another folder")));
  EXPECT_FALSE(first.ended()) << first.output();
  first.send(SIGKILL);
  EXPECT_EQ(first.wait(), 137);
  EXPECT_EQ(headrace(training({"--resume", "--stop-after-steps", "1"})).status, 0);
}

TEST_F(CheckpointFolder, LosesWhatDeadProcessesLeft) {
  const auto left_over = [&] {
    std::vector<std::string> names;
    for (const DirectoryEntry& entry : list_directory(folder())) {
      if (entry.path.extension() == ".tmp") names.push_back(entry.path.filename().string());
    }
    return names;
  };
  fs::create_directories(folder());
  work_.write("checkpoints/checkpoint-1.safetensors.4194304.0.tmp", "killed a moment ago");
  const FileWriter alive(folder() / "record.safetensors");
  EXPECT_EQ(left_over().size(), 2U);
  said_by({"--resume"}, 0);
  const std::vector<std::string> names = left_over();
  ASSERT_EQ(names.size(), 1U);
  EXPECT_THAT(names.front(), StartsWith("record.safetensors."));
}

TEST_F(CheckpointFolder, IsNotWrittenThroughALink) {
  const fs::path theirs = write_others("theirs.safetensors");
  const std::vector<std::byte> before = read_whole_file(theirs);
  fs::create_directories(folder());
  for (const fs::path& name : {checkpoint(4), folder() / "best.safetensors"}) fs::create_symlink(theirs, name);
  fs::create_symlink(work_ / "made", checkpoint(8));
  said_by({"--checkpoint-best", "loss"}, 0);
  EXPECT_EQ(read_whole_file(theirs), before);
  EXPECT_FALSE(fs::exists(work_ / "made"));
  for (const fs::path& name : {checkpoint(4), checkpoint(8), folder() / "best.safetensors"}) {
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(name))) << name;
  }
}

TEST_F(CheckpointFolder, ThatCannotBeWrittenIsRefusedBeforeTheTraining) {
  Words command;
  if (::geteuid() == 0)
    command = {"setpriv", "--bounding-set=-all", "--inh-caps=-all"};  // root may write anywhere
  command.push_back("true");
  if (run_command(command).status != 0) GTEST_SKIP() << "cannot give up what root may do";
  command.back() = HEADRACE_BINARY;
  for (const std::string& word : training()) command.push_back(word);
  fs::create_directories(folder());
  fs::permissions(folder(), fs::perms::owner_read | fs::perms::owner_exec);
  const CommandResult result = run_command(command);
  fs::permissions(folder(), fs::perms::owner_all);
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("cannot create: Permission denied"));
  EXPECT_THAT(result.output, Not(HasSubstr("Epoch 1/3")));
}

}  // namespace
}  // namespace headrace::test
