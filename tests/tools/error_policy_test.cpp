// Bad records in every command: what becomes of them, and what is said of them at the end.
#include <nlohmann/json.hpp>

#include "headrace/tests/pipeline/sources/arrays/idx_fixture.h"
#include "headrace/tests/support/oriented.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

nlohmann::json last_line(const std::string& text) {
  nlohmann::json last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("{")) last = nlohmann::json::parse(line);
  }
  return last;
}

class ErrorPolicyOfCommands : public testing::Test {
 protected:
  static constexpr int kImages = 20;

  // A folder of photographs, `bad` of which are cut in half.
  std::string images(const std::set<int>& bad) {
    const std::string name = "set" + std::to_string(sets_++);
    for (int i = 0; i < kImages; ++i) {
      const Bytes file = encode_jpeg(make_picture(30 + i % 3, 40, 3, static_cast<std::uint64_t>(i)));
      folder_.write(name + (i < kImages / 2 ? "/cat/" : "/dog/") + std::to_string(100 + i) + ".jpg",
                    bad.contains(i) ? cut_to_percent(file, 50) : file);
    }
    return (folder_ / name).string();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // "headrace: 2 of 20 records were bad and were skipped; first: ...".
  static auto says(const std::string& count, const std::string& data, int first, const std::string& list) {
    const std::string file = std::string(first < kImages / 2 ? "cat/" : "dog/") + std::to_string(100 + first);
    return AllOf(StartsWith("headrace: " + count + "; first: " + data + " record " + std::to_string(first)),
                 HasSubstr(": " + file + ".jpg: "), EndsWith(" (" + list + ")\n"));
  }

  TempFolder folder_;
  int sets_ = 0;
};

const std::vector<std::string> kSkip{"--on-error", "skip", "--max-bad-share", "0.5"};
const std::vector<std::string> kSubstitute{"--on-error", "substitute", "--max-bad-share", "0.5"};
const char* const kList = "--quarantine FILE lists them all";

TEST_F(ErrorPolicyOfCommands, EveryCommandSaysHowManyRecordsItSkipped) {
  const std::string data = images({3, 14});
  const std::vector<std::string> pipeline{"--pipeline", "jpeg-eval",  "--data", data,     "--global-batch",
                                          "8",          "--replicas", "2",      "--json", "-"};
  const auto with = [&](std::vector<std::string> command) {
    command.insert(command.end(), pipeline.begin(), pipeline.end());
    return command;
  };
  for (const auto& command :
       {with({"digest", "--epochs", "3"}), with({"ledger"}), with({"bench", "input", "--seconds", "0.2"}),
        with({"explain", "--seconds", "0.2"})}) {
    const CommandResult skipped = headrace(command, kSkip);
    EXPECT_EQ(skipped.status, 0) << skipped.errors;
    const auto line =
        skipped.errors.substr(skipped.errors.rfind("headrace: "));  // behind what a slow machine is told
    EXPECT_THAT(line, says("2 of 20 records were bad and were skipped", data, 3, kList)) << command[0];
    if (command[0] != "ledger") {
      EXPECT_EQ(last_line(skipped.output).at("bad_records"), 2) << command[0];
    }
  }
  const CommandResult replaced = headrace(with({"digest"}), kSubstitute);
  EXPECT_THAT(replaced.errors, says("2 of 20 records were bad and were replaced by others", data, 3, kList));
}

TEST_F(ErrorPolicyOfCommands, OneRecordIsOneAndNoneIsNothing) {
  const auto digest = [&](const std::set<int>& bad, const std::vector<std::string>& more) {
    std::vector<std::string> command{"digest", "--pipeline", "jpeg-eval", "--data", images(bad), "--json", "-"};
    command.insert(command.end(), more.begin(), more.end());
    return std::pair(headrace(command), command[4]);
  };
  const auto [one, data] = digest({12}, kSkip);
  EXPECT_THAT(one.errors, says("1 of 20 records was bad and was skipped", data, 12, kList));
  const auto [other, folder] = digest({12}, kSubstitute);
  EXPECT_THAT(other.errors, says("1 of 20 records was bad and was replaced by another", folder, 12, kList));
  const auto [none, whole] = digest({}, kSkip);
  EXPECT_EQ(none.errors, "");
  EXPECT_EQ(last_line(none.output).at("bad_records"), 0);
}

TEST_F(ErrorPolicyOfCommands, TheQuarantineFileListsThem) {
  const std::string data = images({3, 14}), list = path("bad.jsonl");
  const CommandResult result = headrace(
      {"digest", "--pipeline", "jpeg-eval", "--data", data, "--quarantine", list, "--epochs", "2"}, kSkip);
  EXPECT_THAT(result.errors,
              says("2 of 20 records were bad and were skipped", data, 3, "all are listed in " + list));
  std::ifstream file(list);
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(file), {}, '\n'), 2);
}

TEST_F(ErrorPolicyOfCommands, TooManyEndTheRun) {
  const std::string data = images({3, 14});
  const std::vector<std::string> digest{"digest", "--pipeline", "jpeg-eval", "--data", data};
  const CommandResult by_default = headrace(digest, {"--on-error", "skip"});
  EXPECT_EQ(by_default.status, 1);
  EXPECT_THAT(by_default.errors,
              StartsWith("headrace: " + data +
                         ": 1 of the 20 examples of an epoch is bad, --max-bad-share 0.01 allows none; the last: "
                         "cat/103.jpg: "));
  EXPECT_THAT(by_default.errors, HasSubstr("or allow more with --max-bad-share"));
  EXPECT_EQ(headrace(digest, {"--on-error", "skip", "--max-bad-share", "0.05"}).status, 1);
  EXPECT_EQ(headrace(digest, {"--on-error", "skip", "--max-bad-share", "0.1"}).status, 0);
  EXPECT_EQ(headrace(digest, {"--on-error", "skip", "--max-bad-share", "1.1"}).status, 2);
}

TEST_F(ErrorPolicyOfCommands, ARunInWhichNothingWasGoodIsAnError) {
  std::set<int> all;
  for (int i = 0; i < kImages; ++i) all.insert(i);
  const std::string data = images(all), to = path("packed");
  const std::vector<std::string> any{"--on-error", "skip", "--max-bad-share", "1"};
  const std::vector<std::string> pipeline{"--pipeline", "jpeg-eval", "--data", data};
  for (std::vector<std::string> command : {std::vector<std::string>{"digest"},
                                           {"ledger", "--check"},
                                           {"bench", "input", "--seconds", "1"},
                                           {"explain", "--seconds", "1"}}) {
    command.insert(command.end(), pipeline.begin(), pipeline.end());
    const CommandResult result = headrace(command, any);
    EXPECT_EQ(result.status, 1) << command[0];
    EXPECT_THAT(result.errors, HasSubstr("headrace: " + data +
                                         ": not one of the 20 examples of an epoch could be used; the last: "
                                         "dog/119.jpg: "))
        << command[0];
  }
  const CommandResult replaced = headrace(
      {"digest", "--pipeline", "jpeg-eval", "--data", data, "--on-error", "substitute", "--max-bad-share", "1"});
  EXPECT_EQ(replaced.status, 1);
  EXPECT_THAT(replaced.errors, HasSubstr("nor could any of 16 other records drawn in its place be used"));
  const CommandResult packed = headrace({"convert", "--data", data, "--to", to}, any);
  EXPECT_EQ(packed.status, 1);
  EXPECT_THAT(packed.errors, HasSubstr("not one of the 20 records of the train split could be used"));
  EXPECT_FALSE(std::filesystem::exists(to));
}

TEST_F(ErrorPolicyOfCommands, ConvertFailsAtABadImageAndLeavesNothing) {
  const std::string data = images({3, 14}), to = path("packed"), list = path("bad.jsonl");
  const CommandResult result = headrace({"convert", "--data", data, "--to", to, "--quarantine", list});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, StartsWith("headrace: " + data + ": cat/103.jpg: convert: "));
  EXPECT_FALSE(std::filesystem::exists(to));
  std::ifstream file(list);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(nlohmann::json::parse(line).at("action"), "fail");
  EXPECT_FALSE(nlohmann::json::parse(line).contains("epoch"));
}

TEST_F(ErrorPolicyOfCommands, ConvertLeavesOutWhatItSkips) {
  const std::string data = images({3, 14}), to = path("packed"), list = path("bad.jsonl");
  for (const std::vector<std::string>& again : {std::vector<std::string>{}, {"--quality", "80"}}) {
    std::vector<std::string> command{"convert", "--data", data, "--to", to, "--quarantine", list, "--json", "-"};
    command.insert(command.end(), again.begin(), again.end());
    const CommandResult result = headrace(command, kSkip);
    ASSERT_EQ(result.status, 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("headrace: 2 of 20 records were bad and were skipped; first: " + data));
    EXPECT_EQ(last_line(result.output).at("records"), 18);
    EXPECT_EQ(last_line(result.output).at("bad_records"), 2);
    const CommandResult ledger = headrace(
        {"ledger", "--check", "--pipeline", "jpeg-eval", "--data", to, "--split", "train", "--replicas", "2"});
    EXPECT_THAT(ledger.output, HasSubstr("exactly once: 18 records")) << ledger.errors;
  }
  const CommandResult too_many = headrace(
      {"convert", "--data", data, "--to", path("other"), "--on-error", "skip", "--max-bad-share", "0.05"});
  EXPECT_EQ(too_many.status, 1);
  EXPECT_THAT(too_many.errors,
              HasSubstr("2 of the 20 records of the train split are bad, --max-bad-share 0.05 allows 1"));
  EXPECT_FALSE(std::filesystem::exists(path("other")));
}

TEST_F(ErrorPolicyOfCommands, ConvertRefusesToSubstitute) {
  const CommandResult result =
      headrace({"convert", "--data", images({}), "--to", path("packed"), "--on-error", "substitute"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.errors, "headrace: --on-error substitute: must be fail or skip\n");
  EXPECT_FALSE(std::filesystem::exists(path("packed")));
}

TEST_F(ErrorPolicyOfCommands, TrainingCountsThoseOfTheTestSplitToo) {
  constexpr std::uint32_t kTrain = 10'064, kTest = 10;
  const auto labels = [](std::uint32_t count, std::size_t wrong) {
    Bytes file = make_idx({count});
    for (std::size_t i = 8; i < file.size(); ++i) file[i] = static_cast<std::byte>(i % 10);
    file[8 + wrong] = std::byte{99};
    return file;
  };
  folder_.write("train-images-idx3-ubyte", make_idx({kTrain, 28, 28}));
  folder_.write("t10k-images-idx3-ubyte", make_idx({kTest, 28, 28}));
  folder_.write("train-labels-idx1-ubyte", labels(kTrain, 17));
  folder_.write("t10k-labels-idx1-ubyte", labels(kTest, 3));
  const CommandResult result = headrace({"train", "--recipe", "mnist-mlp", "--data", folder_.path().string(),
                                         "--devices", "cpu:1", "--epochs", "2", "--verbose", "0", "--json", "-"},
                                        kSkip);
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors, AllOf(HasSubstr("headrace: 2 of 10,074 records were bad and were skipped; first: "),
                                   HasSubstr(" record 17"), HasSubstr("label 99 where there are 10 classes")));
  EXPECT_EQ(last_line(result.output).at("bad_records"), 2);
}

TEST_F(ErrorPolicyOfCommands, DoctorCountsWarningsAndOrientations) {
  for (int i = 0; i < 10; ++i) {
    Bytes file = encode_jpeg(make_picture(30, 40, 3, static_cast<std::uint64_t>(i)));
    if (i >= 2 && i < 9) file = with_inserted(file, 20, to_bytes("junk that is in the way"));
    if (i == 1) file = jpeg_with_orientation(file, Orientation::kRightTop);
    folder_.write((i < 5 ? "cat/" : "dog/") + std::to_string(100 + i) + ".jpg", file);
  }
  const CommandResult text = headrace({"doctor", "--data", folder_.path().string()});
  EXPECT_EQ(text.status, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("         7 images used with a warning: damage that changes no pixel\n"
                                     "     warning, record 2: cat/102.jpg: decode: "));
  EXPECT_THAT(text.output, HasSubstr("23 extraneous bytes before marker"));
  EXPECT_THAT(text.output,
              HasSubstr("     and 2 more\n         1 image has an EXIF orientation: pixels come as they "
                        "are stored, or turned with --apply-orientation\n"));
  const CommandResult lines = headrace({"doctor", "--data", folder_.path().string(), "--json", "-"});
  const nlohmann::json first = nlohmann::json::parse(lines.output.substr(0, lines.output.find('\n')));
  EXPECT_EQ(first.at("warned"), 7);
  EXPECT_EQ(first.at("first_warned").size(), 5U);
  EXPECT_EQ(first.at("first_warned")[0].at("name"), "cat/102.jpg");
  EXPECT_EQ(first.at("oriented"), 1);
  EXPECT_EQ(first.at("bad"), 0);
}

TEST_F(ErrorPolicyOfCommands, OrientationsAreAppliedOnRequest) {
  for (int i = 0; i < 6; ++i) {
    const Bytes plain = encode_png(make_picture(30, 40, 3, static_cast<std::uint64_t>(i)));
    const auto orientation = static_cast<Orientation>(1 + i);
    const std::string name = (i < 3 ? "/a/" : "/b/") + std::to_string(i) + ".png";
    folder_.write("stored" + name, png_with_orientation(plain, orientation));
    folder_.write("turned" + name, turned_png(plain, orientation));
  }
  const auto digest = [&](const std::string& data, const std::vector<std::string>& more) {
    return headrace({"digest", "--pipeline", "jpeg-train", "--data", path(data), "--global-batch", "4"}, more);
  };
  const CommandResult turned = digest("turned", {});
  ASSERT_EQ(turned.status, 0) << turned.errors;
  EXPECT_EQ(digest("stored", {"--apply-orientation"}).output, turned.output);
  EXPECT_NE(digest("stored", {}).output, turned.output);

  const auto pack = [&](const std::vector<std::string>& more) {
    return headrace({"convert", "--data", path("stored"), "--to", path("packed")}, more);
  };
  EXPECT_EQ(pack({}).status, 0);
  EXPECT_EQ(digest("packed", {"--apply-orientation"}).output, turned.output) << "what convert keeps";
  EXPECT_EQ(pack({"--apply-orientation"}).status, 0);
  const CommandResult upright = digest("packed", {});
  EXPECT_EQ(upright.status, 0);
  EXPECT_EQ(digest("packed", {"--apply-orientation"}).output, upright.output) << "nothing is left to apply";
}

TEST_F(ErrorPolicyOfCommands, OrientationsAreRefusedWhereNothingIsDecoded) {
  folder_.write("train-images-idx3-ubyte", make_idx({10, 28, 28}));
  folder_.write("train-labels-idx1-ubyte", make_idx({10}));
  folder_.write("t10k-images-idx3-ubyte", make_idx({10, 28, 28}));
  folder_.write("t10k-labels-idx1-ubyte", make_idx({10}));
  const std::string data = folder_.path().string();
  const CommandResult pipeline =
      headrace({"digest", "--pipeline", "mnist-train", "--data", data, "--apply-orientation"});
  EXPECT_EQ(pipeline.status, 2);
  EXPECT_THAT(pipeline.errors,
              HasSubstr("the pipeline decodes no images, so there is no EXIF orientation to apply"));
  EXPECT_EQ(headrace({"digest", "--pipeline", "trivial", "--apply-orientation"}).status, 2);
  const CommandResult recipe = headrace({"train", "--recipe", "mnist-mlp", "--data", data, "--apply-orientation"});
  EXPECT_EQ(recipe.status, 2);
  EXPECT_THAT(recipe.errors, HasSubstr("its images are raw pixels, which have no EXIF orientation"));
  const TempFolder out;
  const CommandResult convert =
      headrace({"convert", "--data", data, "--to", (out / "packed").string(), "--apply-orientation"});
  EXPECT_EQ(convert.status, 2);
  EXPECT_THAT(convert.errors, HasSubstr("its images are raw pixels, which are stored as they are"));
}

}  // namespace
}  // namespace headrace::test
