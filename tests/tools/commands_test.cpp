// The commands as scripts use them: exit status 0, the promised JSON keys, the same stream whatever the settings.
#include <dlfcn.h>
#include <nlohmann/json.hpp>

#include "headrace/devices/base/hash.h"
#include "headrace/devices/cpu/cpu_features.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tests/tools/recipes/small_data.h"

namespace headrace::test {
namespace {

TEST(DigestCommand, OneStreamForAllSettings) {
  const std::vector<std::string> base = {"digest", "--pipeline", "trivial", "--global-batch", "9999", "--epochs",
                                         "2",      "--seed",     "7"};
  const Lines reference = json_of(base);
  ASSERT_GT(reference.size(), 2U);
  expect_keys(reference.front(), {"epoch", "step", "examples", "sha256"});
  expect_keys(reference.back(), {"final", "sha256"});
  for (const std::vector<std::string>& settings :
       std::vector<std::vector<std::string>>{{"--replicas", "8", "--threads", "1", "--prefetch", "0"},
                                             {"--replicas", "3", "--threads", "4", "--prefetch", "4"},
                                             {"--replicas", "2", "--cache", "memory"}}) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), settings.begin(), settings.end());
    EXPECT_EQ(json_of(arguments), reference);
  }
}

TEST(DigestCommand, StartStepContinuesTheStream) {
  const Lines whole = json_of({"digest", "--pipeline", "trivial", "--global-batch", "99999", "--seed", "7"});
  const Lines tail =
      json_of({"digest", "--pipeline", "trivial", "--global-batch", "99999", "--seed", "7", "--start-step", "3"});
  ASSERT_EQ(tail.size() + 3, whole.size());
  for (std::size_t i = 0; i + 1 < tail.size(); ++i) EXPECT_EQ(tail[i], whole[i + 3]);
}

TEST(DigestCommand, SeedChangesTheStream) {
  if (!std::filesystem::exists(kFashion)) GTEST_SKIP() << "needs Debian's package dataset-fashion-mnist";
  const auto with_seed = [](const char* seed) {
    return json_of({"digest", "--pipeline", "fashion-train", "--data", kFashion.string(), "--seed", seed});
  };
  EXPECT_NE(with_seed("1").back(), with_seed("2").back());
  EXPECT_EQ(with_seed("1").back(), with_seed("1").back());
}

TEST(LedgerCommand, EveryRecordOnceAnEpoch) {
  const CommandResult result = headrace({"ledger", "--pipeline", "trivial", "--global-batch", "1000003",
                                         "--replicas", "8", "--epochs", "2", "--check", "--json", "-"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(std::ranges::count(result.output, '\n'), 2 * 1'048'576 + 1);
  const auto end_of_first = result.output.find('\n');
  expect_keys(nlohmann::json::parse(result.output.substr(0, end_of_first)),
              {"epoch", "step", "replica", "record"});
}

// CIFAR-10 of 20 records, of which record 6 has a label that there is not.
void write_cifar_with_a_bad_record(const TempFolder& folder) {
  for (int file = 1; file <= 5; ++file) {
    Bytes records(4 * 3073, static_cast<std::byte>(file));
    if (file == 2) records[2 * 3073] = std::byte{77};
    folder.write("data_batch_" + std::to_string(file) + ".bin", records);
  }
}

TEST(ShardsWithoutAnIndex, AreOneStreamEachRecordOnceAnEpoch) {
  const TempFolder folder;
  for (std::size_t shard = 0; shard < 3; ++shard) {
    TarBuilder tar;
    for (std::size_t i = 0; i < 10 + shard; ++i) {
      tar.add(std::to_string(i) + ".jpg", encode_jpeg(make_picture(16, 16, 3, 100 * shard + i)));
      tar.add(std::to_string(i) + ".cls", to_bytes("1"));
    }
    folder.write(std::to_string(shard) + ".tar", tar.finish());
  }
  const auto command = [&](std::vector<std::string> arguments) {
    for (const std::string& one :
         {std::string("--data"), folder.path().string(), std::string("--pipeline"), std::string("jpeg-eval"),
          std::string("--global-batch"), std::string("8"), std::string("--epochs"), std::string("2")})
      arguments.push_back(one);
    return arguments;
  };
  const std::vector<std::string> shards{"--no-index", "--window", "16", "--shards", "2"};
  const auto digest = [&](std::vector<std::string> settings) {
    settings.insert(settings.begin(), "digest");
    settings.insert(settings.end(), shards.begin(), shards.end());
    return json_of(command(settings));
  };
  const Lines whole = digest({"--replicas", "1"});
  ASSERT_EQ(whole.size(), 2U * 5U + 1U);
  EXPECT_EQ(digest({"--replicas", "3", "--threads", "2", "--prefetch", "4"}), whole);
  const Lines rest = digest({"--start-step", "7"});
  EXPECT_EQ(Lines(rest.begin(), rest.end() - 1), Lines(whole.begin() + 7, whole.end() - 1));
  EXPECT_EQ(headrace(command({"ledger", "--check", "--no-index"})).status, 0);
  const CommandResult alone = headrace(command({"ledger", "--window", "16"}));
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.errors, HasSubstr("--no-index"));
  const CommandResult images = headrace({"digest", "--pipeline", "trivial", "--no-index"});
  EXPECT_EQ(images.status, 2);
  EXPECT_THAT(images.errors, HasSubstr("--no-index"));
}

TEST(OnError, FailNamesTheRecord) {
  const TempFolder folder;
  write_cifar_with_a_bad_record(folder);
  const CommandResult result = run_command({HEADRACE_BINARY, "digest", "--pipeline", "cifar-train", "--data",
                                            folder.path().string(), "--global-batch", "8"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.errors.find("label 77 where there are 10 classes, record 6"), std::string::npos)
      << result.errors;
}

TEST(OnError, SkipAndSubstituteGoOnAndListIt) {
  for (const char* policy : {"skip", "substitute"}) {
    const TempFolder folder;
    write_cifar_with_a_bad_record(folder);
    const std::filesystem::path quarantine = folder / "bad records.jsonl";
    const auto run = [&](const char* replicas, const char* threads) {
      return json_of({"ledger",
                      "--pipeline",
                      "cifar-train",
                      "--data",
                      folder.path().string(),
                      "--global-batch",
                      "8",
                      "--replicas",
                      replicas,
                      "--threads",
                      threads,
                      "--epochs",
                      "2",
                      "--check",
                      "--on-error",
                      policy,
                      "--max-bad-share",
                      "0.05",
                      "--quarantine",
                      quarantine.string()});
    };
    const bool skips = std::string(policy) == "skip";
    EXPECT_EQ(run("1", "1").size(), skips ? 39U : 41U);
    EXPECT_EQ(run("3", "2").size(), skips ? 39U : 41U);
    std::ifstream file(quarantine);
    std::size_t lines = 0;
    for (std::string text; std::getline(file, text); ++lines) {
      const nlohmann::json line = nlohmann::json::parse(text);
      expect_keys(line, {"source", "record", "name", "operation", "cause", "code", "epoch", "step", "action"});
      EXPECT_EQ(line["record"], 6);
      EXPECT_EQ(line["action"], policy);
      EXPECT_EQ(line.contains("substitute"), !skips);
    }
    EXPECT_EQ(lines, 2U) << "one a run";
  }
}

TEST(DoctorCommand, ListsTheCpu) {
  bool cpu = false;
  for (const nlohmann::json& line : json_of({"doctor"})) {
    expect_keys(line, {"name", "found", "version", "hint"});
    cpu |= line["name"] == "device cpu:0";
  }
  EXPECT_TRUE(cpu);
}

TEST(DoctorCommand, SaysWhyTheCudaMathematicsAreMissing) {
  const auto module = std::filesystem::path(HEADRACE_BINARY).parent_path() / "libheadrace_cuda.so";
  const auto beside =
      std::filesystem::path(HEADRACE_BINARY).parent_path().parent_path() / "lib" / "libheadrace_cuda.so";
  if (!std::filesystem::exists(module) && !std::filesystem::exists(beside)) GTEST_SKIP() << "built without CUDA";
  const CommandResult result =
      run_command({"/usr/bin/env", "HEADRACE_CUDA_MATH_MODULE=/nowhere/math.so", HEADRACE_BINARY, "doctor"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_NE(result.output.find("missing  CUDA mathematics"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("there is no /nowhere/math.so"), std::string::npos) << result.output;
}

TEST(DoctorCommand, SaysWhichPlansAreKeptAndHowToForgetThem) {
  const TempFolder folder;
  const std::string plans =
      "headrace-plans\t1\ngpu\tSome GPU\ncompute_capability\t9.0\nmultiprocessors\t132\nlibrary\tcuDNN 9.19.0\n"
      "tuned\teng1\tforward\n";
  folder.write("some.plans", plans + "checksum\t" + to_hex(xxh3(plans)) + "\n");
  folder.write("damaged.plans", plans);
  const CommandResult result = run_command(
      {"/usr/bin/env", "HEADRACE_CUDA_PLAN_FOLDER=" + folder.path().string(), HEADRACE_BINARY, "doctor"});
  EXPECT_EQ(result.status, 0) << result.errors;
  if (result.output.find("cuDNN") == std::string::npos) GTEST_SKIP() << "built without CUDA's mathematics";
  EXPECT_NE(result.output.find("damaged.plans: its end is missing; 1 for Some GPU, sm_90, 132 multiprocessors"),
            std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("remove " + folder.path().string() + " to have them measured anew"),
            std::string::npos)
      << result.output;
}

TEST(TrainCommand, AnInterruptEndsItAfterTheStep) {
  if (!std::filesystem::exists(kFashion)) GTEST_SKIP() << "needs Debian's package dataset-fashion-mnist";
  const TempFolder folder;
  const std::string script =
      "'" HEADRACE_BINARY "' train --recipe mnist-mlp --data '" + kFashion.string() +
      "' --devices cpu:1 --epochs 100000 --steps-per-epoch 2 --verbose 0 --json \"$0\" & train=$!\n"
      "while [ ! -s \"$0\" ]; do sleep 0.02; done\n"
      "kill -INT $train; wait $train";
  const CommandResult result = run_command({"/bin/sh", "-c", script, (folder / "lines").string()});
  EXPECT_EQ(result.status, 130);
  EXPECT_NE(result.errors.find("interrupted after step"), std::string::npos) << result.errors;
}

TEST(TrainCommand, ReportsItsKeysAndRepeatsItself) {
  if (!std::filesystem::exists(kFashion)) GTEST_SKIP() << "needs Debian's package dataset-fashion-mnist";
  const std::vector<std::string> arguments = {
      "train", "--recipe",  "mnist-mlp", "--data", kFashion.string(), "--epochs", "2", "--steps-per-epoch",
      "40",    "--devices", "cpu:2"};
  const Lines lines = json_of(arguments);
  ASSERT_EQ(lines.size(), 3U);
  expect_keys(lines.front(),
              {"epoch", "steps", "seconds", "examples_per_second", "input_stall_fraction", "exposed_copy_fraction",
               "device_idle_fraction", "host_us_per_step", "loss", "accuracy", "val_loss", "val_accuracy"});
  expect_keys(lines.back(),
              {"final", "test_loss", "test_accuracy", "weights_sha256", "replicas", "devices", "precision"});
  EXPECT_EQ(lines.back()["replicas"], 2);
  EXPECT_EQ(lines.front()["steps"], 40);
  EXPECT_GT(lines.back()["test_accuracy"], 0.5);
  EXPECT_EQ(json_of(arguments).back()["weights_sha256"], lines.back()["weights_sha256"]);
}

TEST(TrainCommand, ComputesProductsInThePrecisionThatIsSaid) {
  if (!std::filesystem::exists(kFashion)) GTEST_SKIP() << "needs Debian's package dataset-fashion-mnist";
  std::map<std::string, std::string> weights;
  for (const std::string precision : {"f32", "bf16", "auto"}) {
    const auto last = json_of({"train", "--recipe", "mnist-mlp", "--data", kFashion.string(), "--epochs", "1",
                               "--steps-per-epoch", "20", "--devices", "cpu:1", "--precision", precision})
                          .back();
    EXPECT_TRUE(precision == "auto" || last["precision"] == precision) << last;
    EXPECT_TRUE(weights.try_emplace(last["precision"], last["weights_sha256"]).second || precision == "auto");
    EXPECT_EQ(weights.at(last["precision"]), last["weights_sha256"]) << precision;
  }
  EXPECT_EQ(weights.size(), 2U);
  EXPECT_NE(weights["f32"], weights["bf16"]);
}

TEST(TrainCommand, TrainsTheFastRecipe) {
  const TempFolder folder;
  write_cifar(folder);
  const Lines lines = json_of({"train", "--recipe", "cifar10-fast", "--data", folder.path().string(), "--devices",
                               "cpu:2", "--global-batch", "15", "--epochs", "2"});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["steps"], 3) << "the remainder is dropped";
  EXPECT_FALSE(lines[0].contains("val_loss")) << "nothing is held out";
  expect_keys(lines.back(), {"final", "seed", "test_loss", "test_accuracy", "weights_sha256", "replicas",
                             "devices", "train_seconds"});
  EXPECT_EQ(lines.back()["steps"], 6);
  EXPECT_GT(lines.back()["train_seconds"], 0);
}

TEST(TrainCommand, TrainsTheFastRecipeB) {
  const TempFolder folder;
  write_cifar(folder);
  const Lines lines = json_of({"train", "--recipe", "cifar10-fast-b", "--data", folder.path().string(),
                               "--devices", "cpu:2", "--global-batch", "4", "--epochs", "1"});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["steps"], 11) << "of 12 in a pass";
  EXPECT_EQ(lines.back()["steps"], 11);
}

// Whatever a run leaves behind in the process changes no later run.
TEST(TrainCommand, RunsOfOneProcessAreThoseOfTheirSeedsAlone) {
  const TempFolder folder;
  write_cifar(folder);
  const auto finals = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"train",     "--recipe", "cifar10-cnn",    "--data", folder.path().string(),
                                       "--devices", "cpu:2",    "--global-batch", "10",     "--stop-after-steps",
                                       "2"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    Lines lines = json_of(arguments);
    std::erase_if(lines, [](const auto& line) { return !line.contains("final"); });
    return lines;
  };
  const Lines together = finals({"--seed", "4", "--runs", "2"});
  ASSERT_EQ(together.size(), 2U);
  EXPECT_NE(together[0]["weights_sha256"], together[1]["weights_sha256"]) << "seeds make a difference";
  for (std::size_t run = 0; run < together.size(); ++run) {
    const Lines alone = finals({"--seed", std::to_string(4 + run)});
    ASSERT_EQ(alone.size(), 1U);
    EXPECT_EQ(together[run]["seed"], 4 + run);
    for (const char* key : {"seed", "weights_sha256", "test_accuracy", "test_loss", "steps"}) {
      EXPECT_EQ(together[run][key], alone[0][key]) << "run " << run << ", " << key;
    }
  }
}

TEST(TrainCommand, AnEpochIsProfiledWithADriverOnly) {
  if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) GTEST_SKIP() << "there is a driver here";
  const TempFolder folder;
  write_cifar(folder);
  const CommandResult result =
      run_command({HEADRACE_BINARY, "train", "--recipe", "cifar10-fast", "--data", folder.path().string(),
                   "--devices", "cpu:1", "--global-batch", "50", "--profile-epoch", "2"});
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.errors.find("--profile-epoch needs NVIDIA's driver"), std::string::npos) << result.errors;
  EXPECT_EQ(result.errors.find("warning: cifar10-fast is made for GPUs") == std::string::npos, has_fast_bf16())
      << result.errors;
}

// Of the engine's threads and of each replica's device, on one axis of time.
TEST(TrainCommand, TrainsTheResNetAndTracesIt) {
  const TempFolder folder;
  write_cifar(folder);
  const std::string trace = (folder.path() / "trace.json").string();
  const Lines lines =
      json_of({"train", "--recipe", "cifar10-resnet18", "--data", folder.path().string(), "--devices", "cpu:2",
               "--global-batch", "4", "--epochs", "1", "--stop-after-steps", "2", "--trace", trace});
  EXPECT_EQ(lines.back()["steps"], 2);
  const auto events = nlohmann::json::parse(std::ifstream(trace))["traceEvents"];
  std::map<int, std::string> tracks;
  std::map<std::string, std::vector<std::pair<double, double>>> steps;
  for (const auto& event : events) {
    if (event["ph"] == "M") tracks[event["tid"]] = event["args"]["name"];
    if (event["ph"] == "X" && event["name"] == "step") {
      const double begin = event["ts"];
      steps[tracks[event["tid"]]].emplace_back(begin, begin + event["dur"].get<double>());
    }
  }
  ASSERT_EQ(steps.size(), 2U);
  for (const char* track : {"cpu:0 steps", "cpu:1 steps"}) {
    ASSERT_EQ(steps[track].size(), 2U) << track;
    EXPECT_LE(steps[track][0].second, steps[track][1].first + 0.002) << track << ", both rounded to nanoseconds";
  }
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(tracks, [&](const auto& track) { return track.second == name; });
  };
  EXPECT_TRUE(has("assembler") && has("compute 0") && has("consumer 1"));
}

}  // namespace
}  // namespace headrace::test
