// What `headrace train` writes and looks for beside its results.
#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tests/tools/recipes/small_data.h"
#include "headrace/tests/tools/spoilt_images.h"

namespace headrace::test {
namespace {

class ObserveOptionsTest : public ::testing::Test {
 protected:
  ObserveOptionsTest() { write_digits(data_, 10'300); }

  // Three epochs of four steps.
  std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"train",     "--recipe",  "mnist-mlp", "--data", data_.path().string(),
                                 "--devices", "cpu:2",     "--epochs",  "3",      "--steps-per-epoch",
                                 "4",         "--verbose", "0"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  TempFolder data_, made_;
};

TEST_F(ObserveOptionsTest, WatchingChangesNoWeights) {
  const auto plain = json_of(arguments());
  const auto watched = json_of(arguments({"--tensorboard", (made_ / "logs").string(), "--tensorboard-steps", "2",
                                          "--histograms", "2", "--csv", (made_ / "run.csv").string(),
                                          "--gradient-norms", "--debug-nan", "--mirror-check-every", "3"}));
  ASSERT_EQ(watched.size(), 4U);
  EXPECT_EQ(watched.back()["weights_sha256"], plain.back()["weights_sha256"]);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(watched[epoch]["loss"], plain[epoch]["loss"]);
    EXPECT_GT(watched[epoch]["gradient_norm"], 0);
    EXPECT_FALSE(plain[epoch].contains("gradient_norm"));
    ASSERT_EQ(plain[epoch]["learning_rates"].size(), 1U);
    EXPECT_FLOAT_EQ(plain[epoch]["learning_rates"][0].get<float>(), 1e-3F);
  }
  std::ifstream csv(made_ / "run.csv");
  std::vector<std::string> lines;
  for (std::string line; std::getline(csv, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[0], StartsWith("epoch,loss,accuracy,val_loss,val_accuracy,"));
  std::vector<std::filesystem::path> events;
  for (const auto& entry : std::filesystem::directory_iterator(made_ / "logs")) events.push_back(entry.path());
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(events[0].filename().string(), StartsWith("events.out.tfevents."));
  EXPECT_GT(std::filesystem::file_size(events[0]), 2000U);
}

TEST_F(ObserveOptionsTest, ClippingAndTheAverageReachTheOptimizer) {
  const auto plain = json_of(arguments());
  const auto clipped = json_of(arguments({"--clip-norm", "0.01"}));
  EXPECT_NE(clipped.back()["weights_sha256"], plain.back()["weights_sha256"]);
  EXPECT_GT(clipped[0]["gradient_norm"], 0.01) << "the norm before";
  const auto wide = json_of(arguments({"--clip-norm", "1e30", "--clip-value", "1e30"}));
  EXPECT_EQ(wide.back()["weights_sha256"], plain.back()["weights_sha256"]) << "beyond all gradients";
  EXPECT_NE(json_of(arguments({"--clip-value", "1e-6"})).back()["weights_sha256"], plain.back()["weights_sha256"]);
  // The same weights, but it is their average that is judged.
  const auto averaged = json_of(arguments({"--average-decay", "0.9"}));
  EXPECT_EQ(averaged.back()["weights_sha256"], plain.back()["weights_sha256"]);
  EXPECT_EQ(averaged[2]["loss"], plain[2]["loss"]);
  EXPECT_NE(averaged[2]["val_loss"], plain[2]["val_loss"]);
  EXPECT_NE(averaged.back()["test_loss"], plain.back()["test_loss"]);
}

TEST_F(ObserveOptionsTest, WhatCannotBeIsRefused) {
  const auto refused = [&](const std::vector<std::string>& more) {
    const CommandResult result = headrace(arguments(more));
    EXPECT_EQ(result.status, 2) << result.errors;
    EXPECT_EQ(result.output, "");
    return result.errors;
  };
  const std::string file = made_.write("file", "text").string();
  EXPECT_THAT(refused({"--tensorboard-steps", "5"}), HasSubstr("--tensorboard-steps needs --tensorboard"));
  EXPECT_THAT(refused({"--histograms", "1"}), HasSubstr("--histograms needs --tensorboard"));
  EXPECT_THAT(refused({"--tensorboard", file}), HasSubstr("is not a folder"));
  EXPECT_THAT(refused({"--tensorboard", (made_ / "logs").string(), "--runs", "2"}), HasSubstr("--runs"));
  EXPECT_THAT(refused({"--csv", file, "--runs", "2"}), HasSubstr("--runs"));
  EXPECT_THAT(refused({"--csv", file, "--json", file}), HasSubstr("both name"));
  EXPECT_THAT(refused({"--csv", data_.path().string()}), HasSubstr("is a folder"));
  EXPECT_THAT(refused({"--clip-norm", "-0.5"}), HasSubstr("--clip-norm -0.5"));
  EXPECT_THAT(refused({"--clip-value", "-1"}), HasSubstr("--clip-value -1"));
  EXPECT_THAT(refused({"--average-decay", "1.5"}), HasSubstr("--average-decay 1.5"));
  EXPECT_THAT(refused({"--mirror-check-every", "-1"}), HasSubstr("--mirror-check-every -1"));
  EXPECT_EQ(contents_of(made_.path()).size(), 1U) << "nothing was made";
}

TEST(DebugNan, NamesTheRecord) {
  const TempFolder folder;
  const auto data = write_spoilt_images(folder);
  const CommandResult result = headrace({"train", "--recipe", "fashion-mnist", "--data", data.string(),
                                         "--devices", "cpu:1", "--debug-nan", "--verbose", "0"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors,
              AllOf(HasSubstr("field 'image'"), HasSubstr("of record 17,"), HasSubstr("replica 0")));
}

}  // namespace
}  // namespace headrace::test
