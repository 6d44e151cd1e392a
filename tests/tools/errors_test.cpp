// What a user does wrong gets one clear line and the right exit status: 2 for wrong usage, 1 for a failed run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "headrace/tests/support/command.h"

namespace headrace::test {
namespace {

class CommandErrors : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("headrace errors " + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static CommandResult headrace(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), HEADRACE_BINARY);
    return run_command(arguments);
  }

  // One message line, perhaps a hint line, nothing on standard output.
  static void expect_clear(const CommandResult& result, int status, const std::string& word) {
    EXPECT_EQ(result.status, status) << result.errors;
    EXPECT_NE(result.errors.find(word), std::string::npos) << result.errors;
    EXPECT_LE(std::count(result.errors.begin(), result.errors.end(), '\n'), 2) << result.errors;
    EXPECT_EQ(result.output, "");
  }

  std::filesystem::path folder_;
};

TEST_F(CommandErrors, NoSubcommandIsWrongUsage) { EXPECT_EQ(headrace({}).status, 2); }

TEST_F(CommandErrors, UnknownOptionIsWrongUsage) {
  EXPECT_EQ(headrace({"digest", "--pipeline", "trivial", "--nonsense"}).status, 2);
}

TEST_F(CommandErrors, MissingData) {
  const std::string missing = (folder_ / "not there").string();
  expect_clear(headrace({"train", "--recipe", "mnist-mlp", "--data", missing}), 1, missing);
  expect_clear(headrace({"digest", "--pipeline", "cifar-train", "--data", missing}), 1, missing);
}

TEST_F(CommandErrors, MistypedPaths) {
  std::filesystem::create_directories(folder_ / "photos" / "train");
  std::ofstream(folder_ / "plan.json") << "{}";
  const std::string mistyped = (folder_ / "fotos" / "train").string(),
                    meant = (folder_ / "photos" / "train").string();
  expect_clear(headrace({"digest", "--pipeline", "jpeg-train", "--data", mistyped}), 1,
               "there is no such file or folder: did you mean '" + meant + "'?");
  expect_clear(headrace({"digest", "--plan", (folder_ / "plan.jsn").string()}), 1,
               ": did you mean '" + (folder_ / "plan.json").string() + "'?");
  expect_clear(headrace({"report", (folder_ / "photoes").string()}), 1,
               ": did you mean '" + (folder_ / "photos").string() + "'?");
}

TEST_F(CommandErrors, AConversionThatTheDevicesCannotDo) {
  expect_clear(headrace({"digest", "--pipeline", "trivial", "--devices", "cpu:2", "--convert", "device"}), 2,
               "cpu:0 reads batches where the host wrote them");
  EXPECT_EQ(headrace({"digest", "--pipeline", "trivial", "--convert", "moon"}).status, 2);
}

TEST_F(CommandErrors, EmptyFolder) {
  expect_clear(headrace({"train", "--recipe", "mnist-mlp", "--data", folder_.string()}), 1, folder_.string());
}

TEST_F(CommandErrors, WrongFormat) {
  const std::filesystem::path file = folder_ / "poem.txt";
  std::ofstream(file) << "a river runs through it\n";
  expect_clear(headrace({"train", "--recipe", "cifar10-cnn", "--data", file.string()}), 1, file.string());
}

TEST_F(CommandErrors, UnknownRecipeListsTheKnown) {
  expect_clear(headrace({"train", "--recipe", "alchemy", "--data", folder_.string()}), 2, "mnist-mlp");
}

TEST_F(CommandErrors, UnknownPipelineListsTheKnown) {
  expect_clear(headrace({"digest", "--pipeline", "pipe-dream"}), 2, "cifar-train");
}

TEST_F(CommandErrors, BadDevices) {
  for (const std::string devices : {"abacus:2", "cpu:0", "cpu:x", "cuda:0,0", "tpu"}) {
    const CommandResult result = headrace({"digest", "--pipeline", "trivial", "--devices", devices});
    expect_clear(result, 2, devices.substr(0, devices.find(':')));
  }
}

TEST_F(CommandErrors, CacheThatIsAFile) {
  expect_clear(headrace({"digest", "--pipeline", "trivial", "--cache", HEADRACE_BINARY}), 2, "is not a folder");
}

TEST_F(CommandErrors, JsonThatCannotBeWritten) {
  const std::string target = (folder_ / "no" / "such" / "file.json").string();
  expect_clear(headrace({"doctor", "--json", target}), 1, target);
}

}  // namespace
}  // namespace headrace::test
