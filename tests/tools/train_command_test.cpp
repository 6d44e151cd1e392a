// What `headrace train` says and does where it is stopped, and how its options reach the input engine.
#include <nlohmann/json.hpp>

#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tests/tools/recipes/small_data.h"
#include "headrace/tests/tools/spoilt_images.h"

namespace headrace::test {
namespace {

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<std::string> train_cifar(const TempFolder& folder, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"train",     "--recipe", "cifar10-cnn",    "--data", folder.path().string(),
                                     "--devices", "cpu:2",    "--global-batch", "9"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(TrainedInPart, AnEpochThatIsCutHasItsLine) {
  const TempFolder folder;
  write_cifar(folder);  // 45 images to train on: 5 steps
  const CommandResult result =
      headrace(train_cifar(folder, {"--stop-after-steps", "7", "--json", "-", "--verbose", "2"}));
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto lines = json_lines(result.output);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["steps"], 5);
  EXPECT_EQ(lines[0]["planned_steps"], 5);
  EXPECT_TRUE(lines[0].contains("val_loss"));
  EXPECT_EQ(lines[1]["epoch"], 2);
  EXPECT_EQ(lines[1]["steps"], 2);
  EXPECT_EQ(lines[1]["planned_steps"], 5);
  EXPECT_GT(lines[1]["loss"], 0);
  EXPECT_FALSE(lines[1].contains("val_loss"));
  EXPECT_EQ(lines[2]["steps"], 7);
  EXPECT_EQ(lines[2]["global_batch"], 9);
  EXPECT_EQ(lines[2]["local_batch"], 5);
  EXPECT_THAT(result.errors, HasSubstr("batch: 9 examples, 4 or 5 on each of 2 replicas\nEpoch 1/8\n5/5 - "));
  EXPECT_THAT(result.errors, ContainsRegex("Epoch 2/8\n2/5 - [^\n]* - loss: [0-9.]+ - accuracy: [0-9.]+\ntest: "));
}

// Ctrl-C is sent when the only epoch has its line: what is left is the test, of which there is much.
TEST(TrainedInPart, AnInterruptEndsTheTest) {
  const TempFolder folder;
  write_cifar(folder, 10, 9000);
  const std::string script = "'" HEADRACE_BINARY "' train --recipe cifar10-cnn --data '" + folder.path().string() +
                             "' --devices cpu:1 --global-batch 4 --stop-after-steps 1 --verbose 0 --json \"$0\" & "
                             "train=$!\n"
                             "while [ ! -s \"$0\" ]; do sleep 0.02; done\n"
                             "kill -INT $train; wait $train; status=$?; cat \"$0\"; exit $status";
  const CommandResult result = run_command({"/bin/sh", "-c", script, (folder / "lines").string()});
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(result.errors.substr(result.errors.find("headrace: interrupted")),
            "headrace: interrupted during the test after step 1\n");
  EXPECT_THAT(result.output, HasSubstr("\"planned_steps\":12"));
  EXPECT_THAT(result.output, Not(HasSubstr("\"final\"")));
}

TEST(Failures, TrainingThatIsNoLongerFiniteIsARunThatFailed) {
  const TempFolder folder;
  const auto data = write_spoilt_images(folder);
  const CommandResult result =
      headrace({"train", "--recipe", "fashion-mnist", "--data", data.string(), "--devices", "cpu:1"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("that are not finite")) << "the loss, or what it spoils";
}

TEST(InputOptions, ReachTheEngineFromEveryRecipe) {
  const TempFolder cifar, digits;
  write_cifar(cifar);
  write_digits(digits, 10'300);
  for (const std::string recipe :
       {"mnist-mlp", "fashion-mnist", "cifar10-cnn", "cifar10-fast", "cifar10-fast-b"}) {
    const bool grey = !recipe.starts_with("cifar");
    const auto run = [&](const std::vector<std::string>& more) {
      std::vector<std::string> arguments{"train",
                                         "--recipe",
                                         recipe,
                                         "--data",
                                         (grey ? digits : cifar).path().string(),
                                         "--devices",
                                         "cpu:2",
                                         "--global-batch",
                                         "8",
                                         "--stop-after-steps",
                                         "2",
                                         "--json",
                                         "-"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      return headrace(arguments);
    };
    const CommandResult free = run({});
    ASSERT_EQ(free.status, 0) << free.errors;
    const CommandResult bounded = run({"--memory-budget", "64M", "--cpu-budget", "1"});
    ASSERT_EQ(bounded.status, 0) << bounded.errors;
    EXPECT_EQ(json_lines(bounded.output).back()["weights_sha256"],
              json_lines(free.output).back()["weights_sha256"]);
    const CommandResult tight = run({"--memory-budget", "1K"});
    EXPECT_EQ(tight.status, 2) << tight.errors;
    EXPECT_THAT(tight.errors, HasSubstr("--memory-budget 1024 does not hold")) << recipe;
    const CommandResult refused = run({"--threads", "3", "--cpu-budget", "2"});
    EXPECT_EQ(refused.status, 2) << refused.errors;
    EXPECT_THAT(refused.errors, HasSubstr("--cpu-budget 2")) << recipe;
  }
}

// Raw images are kept as decoded ones are, and the stream and the weights do not change.
TEST(Caches, AreFilledByEveryRecipeAndPipeline) {
  const TempFolder cifar, digits, work;
  write_cifar(cifar);
  write_digits(digits, 10'300);
  const auto records = [](const std::filesystem::path& cache) {
    const CommandResult result = headrace({"cache", "verify", cache.string(), "--json", "-"});
    EXPECT_EQ(result.status, 0) << result.errors;
    std::uint64_t count = 0;
    for (const nlohmann::json& line : json_lines(result.output)) count = line.value("records", count);
    return count;
  };
  const auto last = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--json", "-"});
    const CommandResult result = headrace(arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    nlohmann::json line = json_lines(result.output).back();
    return line.contains("weights_sha256") ? line["weights_sha256"] : line["sha256"];
  };
  for (const auto& [recipe, data] :
       std::vector<std::pair<std::string, std::string>>{{"mnist-mlp", digits.path().string()},
                                                        {"fashion-mnist", digits.path().string()},
                                                        {"cifar10-cnn", cifar.path().string()},
                                                        {"cifar10-fast", cifar.path().string()}}) {
    const std::vector<std::string> train{"train", "--recipe",       recipe, "--data",   data, "--devices",
                                         "cpu:1", "--global-batch", "10",   "--epochs", "1"};
    std::vector<std::string> cached = train;
    cached.insert(cached.end(), {"--cache", (work / recipe).string()});
    EXPECT_EQ(last(cached), last(train)) << recipe;
    EXPECT_GT(records(work / recipe), 40U) << recipe;
  }
  for (const auto& [pipeline, data, count] : std::vector<std::tuple<std::string, std::string, std::uint64_t>>{
           {"mnist-train", digits.path().string(), 10'300},
           {"fashion-train", digits.path().string(), 10'300},
           {"cifar-train", cifar.path().string(), 50},
           {"cifar-eval", cifar.path().string(), 50},
           {"trivial", "", 1 << 20}}) {
    std::vector<std::string> digest{"digest", "--pipeline", pipeline};
    if (!data.empty()) digest.insert(digest.end(), {"--data", data});
    std::vector<std::string> cached = digest;
    cached.insert(cached.end(), {"--cache", (work / pipeline).string()});
    EXPECT_EQ(last(cached), last(digest)) << pipeline;
    EXPECT_EQ(records(work / pipeline), count) << pipeline;
    cached.back() = "memory";
    EXPECT_EQ(last(cached), last(digest)) << pipeline;
  }
}

TEST(BenchBaseline, IsThereForEveryPipeline) {
  const TempFolder cifar, digits;
  write_cifar(cifar);
  write_digits(digits, 200);
  for (const auto& [pipeline, data] :
       std::vector<std::pair<std::string, std::string>>{{"trivial", ""},
                                                        {"mnist-train", digits.path().string()},
                                                        {"fashion-train", digits.path().string()},
                                                        {"cifar-train", cifar.path().string()},
                                                        {"cifar-eval", cifar.path().string()}}) {
    std::vector<std::string> bench{"bench",     "input", "--pipeline", pipeline, "--seconds", "0.3",
                                   "--threads", "1",     "--baseline", "--json", "-"};
    if (!data.empty()) bench.insert(bench.end(), {"--data", data});
    const CommandResult result = headrace(bench);
    ASSERT_EQ(result.status, 0) << pipeline << ": " << result.errors;
    const auto line = json_lines(result.output).back();
    EXPECT_GT(line["baseline_images_per_second"], 0) << pipeline;
    EXPECT_GT(line["ratio"], 0) << pipeline;
    EXPECT_NE(line["baseline"], "") << pipeline;
    EXPECT_EQ(line.contains("memory_ratio"), pipeline == "cifar-train") << pipeline;
    if (line.contains("memory_ratio")) {
      EXPECT_EQ(line["samples"]["memory"].size(), line["samples"]["headrace"].size());
      EXPECT_GT(line["memory_images_per_second"], 0);
      EXPECT_THAT(result.output + result.errors, HasSubstr("memory alone: "));
    }
  }
}

}  // namespace
}  // namespace headrace::test
