// Names from outside reach people with everything written out that a terminal would obey, and programs as they
// are.
#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

const std::string kEvil = "e\033[31mvil\nname\x7F";
const std::string kShown = "e\\x1b[31mvil\\nname\\x7f";

// A folder of that name with images, in classes of that name.
std::string write_evil_images(const TempFolder& to) {
  for (const auto& [name, bytes] : make_image_files()) {
    std::string path = name;
    if (const std::size_t at = path.find("cat/"); at != std::string::npos) path.replace(at, 3, kEvil);
    to.write(kEvil + "/" + path, bytes);
  }
  return (to / kEvil).string();
}

void expect_harmless(const CommandResult& result) {
  for (const std::string& text : {result.output, result.errors}) {
    const auto obeyed = [](char letter) {
      return letter != '\n' && (static_cast<unsigned char>(letter) < 32 || letter == 127);
    };
    EXPECT_EQ(std::ranges::count_if(text, obeyed), 0) << text;
    EXPECT_THAT(text, Not(HasSubstr("vil\nname")));
  }
}

TEST(PrintedNames, OfCommandsAndTheirErrors) {
  const TempFolder folder;
  const std::string data = write_evil_images(folder), none = (folder / ("no" + kEvil)).string();
  struct Case {
    std::vector<std::string> arguments;
    int status;
  };
  const std::vector<Case> cases = {
      {{"doctor", "--data", data}, 0},
      {{"explain", "--pipeline", "jpeg-eval", "--data", data}, 0},
      {{"convert", "--data", data, "--to", (folder / (kEvil + ".records")).string()}, 0},
      {{"digest", "--pipeline", "jpeg-eval", "--data", none}, 1},
      {{"doctor", "--data", none}, 1},
      {{"convert", "--data", data, "--to", data}, 2},
      {{"cache", "inspect", none}, 1},
      {{"report", none}, 1},
      {{"digest", "--pipeline", "jpeg-eval", "--data", data, "--classes-at", kEvil}, 2},
      {{"digest", "--plan", none}, 1},
      {{"evaluate", "--record", none, "--data", data}, 1},
      {{"train", "--recipe", kEvil, "--data", data}, 2},
      {{"digest", "--pipeline", "trivial", "--seed", kEvil}, 2},
      {{"digest", "--pipeline", "trivial", "--" + kEvil}, 2},
      {{kEvil}, 2},
  };
  for (const Case& one : cases) {
    const CommandResult result = headrace(one.arguments);
    EXPECT_EQ(result.status, one.status) << result.errors;
    expect_harmless(result);
    EXPECT_THAT(result.output + result.errors, HasSubstr(kShown));
  }
}

TEST(PrintedNames, OfMembersThatAreBad) {
  TarBuilder tar;
  for (const auto& [name, bytes] : make_image_files()) tar.add(name, bytes);
  tar.add("train/cat/" + kEvil + ".jpg", to_bytes("no image"));
  const TempFolder folder;
  const std::string data = folder.write("a.tar", tar.finish()).string();
  const std::vector<std::string> digest = {"digest", "--pipeline", "jpeg-eval", "--split",
                                           "train",  "--data",     data};
  const CommandResult failed = headrace(digest);
  EXPECT_EQ(failed.status, 1);
  expect_harmless(failed);
  EXPECT_THAT(failed.errors, HasSubstr(kShown));
  const CommandResult skipped = headrace(digest, {"--on-error", "skip", "--max-bad-share", "1"});
  EXPECT_EQ(skipped.status, 0) << skipped.errors;
  expect_harmless(skipped);
  EXPECT_THAT(skipped.errors, HasSubstr(kShown));
  const CommandResult doctor = headrace({"doctor", "--data", data, "--examine", "0"});
  expect_harmless(doctor);
  EXPECT_THAT(doctor.output, HasSubstr(kShown));
}

TEST(PrintedNames, AreExactInJson) {
  const TempFolder folder;
  const std::string data = write_evil_images(folder);
  const CommandResult result = headrace({"doctor", "--data", data, "--json", "-"});
  const nlohmann::json line = nlohmann::json::parse(result.output.substr(0, result.output.find('\n')));
  EXPECT_EQ(line["classes"][1]["name"], kEvil) << line;
}

TEST(PrintedNames, OnATerminalJsonIsAscii) {
  const TempFolder folder;
  for (const auto& [name, bytes] : make_image_files())
    folder.write("set/" + name +
                     "\xC2\x9B"
                     "31m.jpg",
                 bytes);
  folder.write(
      "set/train/ca\xC2\x9B"
      "t/0.jpg",
      make_image_files().begin()->second);
  const TerminalRun run =
      run_on_terminal({HEADRACE_BINARY, "doctor", "--data", (folder / "set").string(), "--json", "-"}, 200);
  EXPECT_THAT(run.text, Not(HasSubstr("\xC2\x9B"))) << "a terminal may obey it";
  EXPECT_THAT(run.text, HasSubstr("ca\\u009bt"));
}

TEST(PrintedNames, ANulIsNoEndOfAMessage) {
  const TempFolder folder;
  const std::string_view rows("path,label\na\0b.jpg,1\nimages.jpg,0\n", 34);
  const std::string table = folder.write("list.csv", rows).string();
  folder.write("a", make_image_files().begin()->second);
  folder.write("images.jpg", make_image_files().begin()->second);
  const CommandResult result =
      headrace({"digest", "--pipeline", "jpeg-eval", "--split", "train", "--data", table});
  EXPECT_EQ(result.status, 1) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("a\\x00b.jpg' cannot be opened")) << "not its beginning, which is there";
}

}  // namespace
}  // namespace headrace::test
