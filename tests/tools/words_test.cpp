// The command's words: help, hints, names of options and of parts.
#include <regex>

#include "headrace/tests/pipeline/sources/images/image_fixture.h"
#include "headrace/tests/support/data.h"
#include "headrace/tests/support/message_names.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tools/output/print.h"

namespace headrace::test {
namespace {

using ::testing::IsSupersetOf;

// What --help says of each command: in its own words, not in those of the parser, and on lines that fit.

TEST(Help, SpeaksToWhoeverReadsIt) {
  const std::vector<CommandPath> commands = all_commands();
  EXPECT_THAT(commands, IsSupersetOf<CommandPath>({{"train"}, {"predict"}, {"bench", "input"}, {"report"}}));
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--help");
    const CommandResult result = headrace(arguments);
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.output, HasSubstr("\nUsage: headrace"));
    for (const char* of_parser : {"INT", "TEXT", "FLOAT", " in [", "POSITIVE", "REQUIRED", "Excludes", "Needs"}) {
      EXPECT_THAT(result.output, Not(HasSubstr(of_parser)));
    }
    std::size_t longest = 0, start = 0;
    for (std::size_t end; (end = result.output.find('\n', start)) != std::string::npos; start = end + 1) {
      longest = std::max(longest, end - start);
    }
    EXPECT_LE(longest, 100U) << result.output;
  }
  const std::string text = headrace({"digest", "--help"}).output;
  EXPECT_THAT(text, HasSubstr("Usage: headrace digest [OPTIONS]\n"));
  EXPECT_THAT(text,
              HasSubstr("  --prefetch N            batches made ahead of the consumer; 0 to 1024; default 2\n"));
  EXPECT_THAT(text, HasSubstr("  --seed N                the seed of everything random in the plan; default 0\n"));
}

// Every variable that the product reads, and every status that it ends with.
TEST(Help, NamesStatusesAndVariables) {
  std::set<std::string> read;
  const std::regex variable("\"(HEADRACE_[A-Z_]+)\"");
  for (const char* floor : {"devices", "cache", "pipeline", "train", "tools"}) {
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(HEADRACE_SOURCE_DIR) / floor)) {
      if (file.path().extension() != ".cpp" && file.path().extension() != ".h") continue;
      std::ifstream stream(file.path());
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      for (std::sregex_iterator at(text.begin(), text.end(), variable); at != std::sregex_iterator(); ++at)
        read.insert((*at)[1]);
    }
  }
  read.erase("HEADRACE_TEST_DEVICES");
  EXPECT_GT(read.size(), 10U);
  const std::string help = headrace({"--help"}).output;
  const std::string page =
      std::regex_replace(headrace({"shell", "--for", "man"}).output, std::regex("\\\\-"), "-");
  for (const std::string& name : read) {
    EXPECT_THAT(help, AnyOf(HasSubstr("\n    " + name + " "), HasSubstr("\n    " + name + "\n")));
    EXPECT_THAT(page, HasSubstr(".B " + name + "\n"));
  }
  for (const int status : {0, tools::kRunFailed, tools::kWrongUsage, tools::kRestart}) {
    EXPECT_THAT(help, HasSubstr("\n    " + std::to_string(status) + " "));
    EXPECT_THAT(page, HasSubstr("\n.B " + std::to_string(status) + "\n"));
  }
}

using OptionsOfCommands = std::map<std::string, std::set<std::string>>;

// Every text of the command that names an option names one that there is: of the command beside it in the text, of
// the command that the file makes, or, in files that several commands share, of one that has all of them.
// tests/tools/wrong_inputs_test.cpp looks at what is printed, by the command that prints it.

// By the command's words, "bench input", none for the program's own; "bench" has those of the commands below it,
// too.
OptionsOfCommands options_of_commands() {
  OptionsOfCommands all{{"", options_in(help_of({}))}};
  for (const CommandPath& command : all_commands()) {
    std::string words;
    for (const std::string& word : command) {
      words += (words.empty() ? "" : " ") + word;
      all[words].merge(options_in(help_of(command)));
    }
  }
  return all;
}

// Options of Headrace in a text, each with the command that stands before it, "headrace train --run-dir", or with
// none.
std::vector<std::pair<std::string, std::string>> options_named_in(const std::string& text) {
  static const std::regex others("(ncu|nsys|zstd|tar|zip)[^\\n]*? --[a-z][-a-z0-9=]*"),
      option("(?:headrace ([a-z]+(?: input)?) )?(--[a-z][-a-z0-9]*)");
  const std::string own = std::regex_replace(text, others, "");
  std::vector<std::pair<std::string, std::string>> named;
  for (std::sregex_iterator at(own.begin(), own.end(), option), end; at != end; ++at)
    named.emplace_back((*at)[1], (*at)[2]);
  return named;
}

// The command that a file makes: "train" of train_command.cpp. Empty: several share it.
std::string command_of(const std::string& file, const OptionsOfCommands& commands) {
  const std::string stem = std::filesystem::path(file).stem().string();
  if (stem == "record_command") return {};  // evaluate and predict
  const std::string name = stem.substr(0, stem.find("_command"));
  return commands.contains(name) ? name : std::string();
}

TEST(Hints, NameOptionsThatTheirCommandHas) {
  const OptionsOfCommands commands = options_of_commands();
  ASSERT_GT(commands.at("train").size(), 40U);
  std::size_t looked_at = 0;
  for (const SourceText& one : texts_in_sources({"tools"})) {
    if (one.file.find("/shell") != std::string::npos) continue;       // writes completions, and is hidden
    if (one.file.find("/page_style") != std::string::npos) continue;  // CSS
    std::set<std::string> without_command;
    for (const auto& [command, option] : options_named_in(one.text)) {
      ++looked_at;
      if (command.empty()) {
        without_command.insert(option);
      } else {
        EXPECT_TRUE(commands.contains(command) && commands.at(command).contains(option))
            << one.file << ": " << one.text;
      }
    }
    const std::string own = command_of(one.file, commands);
    const auto has_all = [&](const auto& command) {
      return (own.empty() || command.first == own) && std::ranges::includes(command.second, without_command);
    };
    EXPECT_TRUE(std::ranges::any_of(commands, has_all)) << one.file << ": " << one.text;
  }
  EXPECT_GT(looked_at, 150U) << "the sources were not found";
}

TEST(Hints, AreSeenToNameWhatIsNotThere) {
  using Named = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(options_named_in("give --epochs 2, or see headrace explain --write-plan"),
            (Named{{"", "--epochs"}, {"explain", "--write-plan"}}));
  EXPECT_EQ(options_named_in("unpack it: zstd -d --long=31"), Named{});
  EXPECT_EQ(options_in("Options:\n  -h, --help    show --this\n  --data PATH   x\n      --no\n"),
            (std::set<std::string>{"--help", "--data"}));
}

// Every option that a message names is one that its reader has: in C++ it is there, a command has the option or is
// known to have none, and no message spells out what another reader calls otherwise.
// tests/bindings/c/option_names_test.cpp and tests/bindings/python/test_errors.py ask the same of C and Python.

void add_matches(const std::string& text, const std::regex& pattern, std::set<std::string>& names) {
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) names.insert((*at)[1]);
}

std::string all_headers() {
  std::string text;
  for (const std::string folder : {"cache", "pipeline", "train", "tools"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_file(folder))) {
      if (entry.path().extension() == ".h") text += text_of(entry.path());
    }
  }
  return text;
}

// Between the braces of the struct or class; empty where there is none of the name.
std::string body_of(const std::string& type, const std::string& headers) {
  std::smatch found;
  if (std::regex_search(headers, found, std::regex("using " + type + " = (\\w+);")))
    return body_of(found[1], headers);
  if (!std::regex_search(headers, found,
                         std::regex("(struct|class) (HEADRACE_\\w+ )?" + type + " (final )?(: [^{;]*)?\\{")))
    return {};
  const std::size_t begin = static_cast<std::size_t>(found.position() + found.length());
  std::size_t end = begin;
  for (int depth = 1; end < headers.size() && depth > 0; ++end) {
    depth += headers[end] == '{' ? 1 : headers[end] == '}' ? -1 : 0;
  }
  return headers.substr(begin, end - begin);
}

std::string usual_flag(const std::string& name) {
  std::string flag = "--" + name.substr(name.rfind(':') + 1);
  if (flag.ends_with("_bytes")) flag.resize(flag.size() - 6);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

// What no command has is left out of its messages; what one calls otherwise stands in a table.
TEST(OptionNames, AreKnownToTheCommand) {
  const std::set<std::string> named = names_in_messages();
  EXPECT_GT(named.size(), 45U) << "the sources were not found";
  std::set<std::string> options;
  for (const SourceText& one : texts_in_sources({"tools"})) options.insert(one.text);
  const std::string words = text_of(source_file("tools/options/command_words.cpp"));
  const std::regex row(R"re(\{"([^"]+)", "([^"]*)"\})re");
  std::set<std::string> known;
  for (std::sregex_iterator at(words.begin(), words.end(), row), end; at != end; ++at) {
    const std::string name = (*at)[1], word = (*at)[2];
    known.insert(name);
    EXPECT_TRUE(options.contains(word)) << name << ": no command has " << word;
    EXPECT_NE(word, usual_flag(name)) << name << " needs no row";
  }
  EXPECT_GT(known.size(), 5U) << "the table was not found";
  add_matches(words, std::regex("name == \"([^\"]+)\""), known);
  for (const std::string& name : known) EXPECT_TRUE(named.contains(name)) << name << " is named nowhere";
}

TEST(OptionNames, AreThereInCpp) {
  const std::string headers = all_headers();
  for (const std::string& name : names_in_messages()) {
    const std::size_t colons = name.find("::");
    const bool call = name.ends_with("()");
    const std::string scope = colons == std::string::npos ? headers : body_of(name.substr(0, colons), headers);
    std::string member = colons == std::string::npos ? name : name.substr(colons + 2);
    if (call) member.resize(member.size() - 2);
    EXPECT_TRUE(std::regex_search(scope, std::regex("\\b" + member + (call ? "\\(" : "\\b"))))
        << name << (scope.empty() ? ": there is no such type" : ": there is no such member");
  }
}

// What named() gives may be an option of Python or of the command; what stands in a text is C++'s to every reader.
TEST(OptionNames, AreSpelledOutByNoMessageOfTheFloors) {
  const std::regex in_cpp(R"(\w(Options|Policy|Parts|Filter)::|\w(Options|Policy|Parts)\{|\{\.[a-z])");
  EXPECT_TRUE(std::regex_search("use {.from_logits = true}", in_cpp) &&
              std::regex_search("set StepOptions::accumulate to 2", in_cpp));
  for (const SourceText& one : texts_in_sources({"devices", "cache", "pipeline", "train"})) {
    EXPECT_TRUE(is_name_in_cpp(one.text) || !std::regex_search(one.text, in_cpp))
        << one.file << ": \"" << one.text << "\"; name it with named() (devices/base/reader_words.h)";
  }
}

// Names from outside reach people with everything written out that a terminal would obey, and programs as they
// are.

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
