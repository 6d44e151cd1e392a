// Every text of the command that names an option names one that there is: of the command beside it in the text, of
// the command that the file makes, or, in files that several commands share, of one that has all of them.
// tests/tools/wrong_inputs_test.cpp looks at what is printed, by the command that prints it.
#include <regex>

#include "headrace/tests/support/message_names.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

using OptionsOfCommands = std::map<std::string, std::set<std::string>>;

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

}  // namespace
}  // namespace headrace::test
