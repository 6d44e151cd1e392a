// Hundreds of wrong inputs and option values: each ends soon with the right status and one clear message, and
// changes nothing of the user's.
#include <cctype>
#include <iomanip>
#include <regex>

#include "headrace/tests/tools/wrong_files.h"
#include "headrace/tests/tools/wrong_values.h"

namespace headrace::test {
namespace {

const std::string kMaxSeconds = "20";  // beside other tests, perhaps with a sanitizer

// What came, went or is other than before, by name.
std::string changes(const FolderContents& before, const FolderContents& after) {
  std::string names;
  for (const auto& [name, what] : before) {
    const auto now = after.find(name);
    if (now == after.end() || now->second != what) names += (now == after.end() ? "-" : "~") + name + " ";
  }
  for (const auto& [name, what] : after) {
    if (!before.contains(name)) names += "+" + name + " ";
  }
  return names;
}

class WrongInputTable : public ::testing::Test {
 protected:
  // The arguments of a row, or its words.
  std::string with_paths(std::string text) const {
    for (std::size_t at = 0; (at = text.find('@', at)) != std::string::npos;) {
      text.replace(at, 1, folder_.path().string() + "/");
    }
    return text;
  }

  std::vector<std::string> arguments_of(const std::string& line) const {
    std::vector<std::string> arguments;
    std::istringstream stream(line);
    for (std::string one; stream >> std::quoted(one, '\'');) arguments.push_back(with_paths(one));
    return arguments;
  }

  // In a folder that is looked at, for what it leaves behind; killed where it does not end.
  CommandResult run(const std::string& line) const {
    const std::string here = folder_.path().string();
    std::vector<std::string> all = {"/usr/bin/env",  "--chdir=" + here, "TMPDIR=" + here, "timeout",
                                    "--signal=KILL", kMaxSeconds,       HEADRACE_BINARY};
    for (std::string& argument : arguments_of(line)) all.push_back(std::move(argument));
    return with_reading_apart(run_command(all));
  }

  static void expect_one_message(const CommandResult& result) {
    const std::string& errors = result.errors;
    const std::size_t first_end = errors.find('\n');
    ASSERT_NE(first_end, std::string::npos) << "no whole line: " << errors;
    const std::string hint = errors.substr(first_end + 1);
    const bool of_usage = result.status == 2 && hint == "Run with --help for more information.\n";
    EXPECT_TRUE(of_usage || errors.starts_with("headrace: ")) << errors;
    EXPECT_TRUE(of_usage || hint.empty() || hint.starts_with("  hint: ")) << errors;
    EXPECT_LE(std::ranges::count(hint, '\n'), 1) << errors;
    EXPECT_TRUE(result.status != 1 || hint.starts_with("  hint: ")) << "no next step: " << errors;
    EXPECT_GT(first_end, std::string("headrace: ").size()) << errors;
  }

  // A message names options that this command has, or those of the command that it names beside them, and none of
  // C++'s names.
  void expect_words_of_the_command(const std::string& line, const std::string& errors) const {
    static const std::regex kOption("(headrace [a-z]+ (?:input |inspect |verify )?)?(--[a-z][-a-z0-9]*)");
    const std::string said = without_inputs(errors, line);
    for (std::sregex_iterator at(said.begin(), said.end(), kOption), end; at != end; ++at) {
      if ((*at)[2] == "--help") continue;
      const std::string command = (*at)[1].matched ? (*at)[1].str().substr(9) : command_of(line);
      EXPECT_NE((help_of(command) + "  --version ").find("  " + (*at)[2].str() + " "), std::string::npos)
          << (*at)[2] << " in: " << errors;
    }
    static const std::regex kOfCpp(
        R"(::|\b\w+\(\)|\{\.\w+|\b[a-z]+(_[a-z]+)+ = |\bk[A-Z][a-z]\w+|_bytes\b|bad_alloc)");
    std::smatch found;
    EXPECT_FALSE(std::regex_search(said, found, kOfCpp)) << found[0] << " in: " << errors;
  }

  // Without what the user typed, which a message may repeat, and the test's folder, whose name is random letters.
  std::string without_inputs(std::string text, const std::string& line) const {
    for (const std::string& typed : arguments_of(line)) {
      const bool option =
          typed.starts_with("--") && help_of(command_of(line)).find("  " + typed + " ") != std::string::npos;
      const auto belongs = [&](std::size_t at) {
        return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '-');
      };
      for (std::size_t at = 0; !typed.empty() && !option && (at = text.find(typed, at)) != std::string::npos;) {
        const bool whole = !belongs(at + typed.size()) && (at == 0 || !belongs(at - 1));
        whole ? void(text.erase(at, typed.size())) : void(++at);
      }
    }
    const std::string here = folder_.path().string();
    for (std::size_t at = 0; (at = text.find(here, at)) != std::string::npos;) text.erase(at, here.size());
    return text;
  }

  // "bench input " of "bench input --pipeline trivial".
  static std::string command_of(const std::string& line) {
    std::istringstream words(line);
    std::string command, below;
    words >> command >> below;
    if (command.empty() || command[0] == '-') return "";
    const bool nested = (command == "bench" || command == "cache") &&
                        help_of(command + " ").find("  " + below + " ") != std::string::npos;
    return command + " " + (nested ? below + " " : "");
  }

  static const std::string& help_of(const std::string& command) {
    static std::map<std::string, std::string> known;
    const auto [found, is_new] = known.try_emplace(command);
    if (is_new) {
      std::vector<std::string> arguments = {HEADRACE_BINARY};
      std::istringstream words(command);
      for (std::string word; words >> word;) arguments.push_back(word);
      arguments.emplace_back("--help");
      found->second = run_command(arguments).output;
      std::ranges::replace(found->second, '\n', ' ');
    }
    return found->second;
  }

  void check(const WrongInputs& rows) {
    FolderContents before = contents_of(folder_.path());
    for (const WrongInput& row : rows) {
      SCOPED_TRACE("headrace " + row.line);
      const CommandResult result = run(row.line);
      EXPECT_EQ(result.status, row.status) << result.errors.substr(0, 2000);
      FolderContents after = contents_of(folder_.path());
      EXPECT_EQ(changes(before, after), "");
      before = std::move(after);
      if (result.status != 1 && result.status != 2) continue;  // crashed, killed or accepted
      expect_one_message(result);
      expect_words_of_the_command(row.line, result.errors);
      if (refused_at_once_) {
        EXPECT_EQ(result.output, "");
      }
      const std::string words = with_paths(row.words);
      if (words.ends_with('\n')) {
        EXPECT_EQ(result.errors, "headrace: " + words);
      } else {
        EXPECT_NE(result.errors.find(words), std::string::npos) << result.errors;
      }
    }
  }

  void SetUp() override { write_sound_inputs(folder_); }

  TempFolder folder_;
  bool refused_at_once_ = true;  // before anything is said on standard output
};

TEST_F(WrongInputTable, Usage) { check(wrong_usage()); }
TEST_F(WrongInputTable, Paths) { check(mistyped_paths()); }
TEST_F(WrongInputTable, Numbers) { check(wrong_numbers()); }
TEST_F(WrongInputTable, Integers) { check(wrong_integers()); }
TEST_F(WrongInputTable, Fractions) { check(wrong_fractions()); }
TEST_F(WrongInputTable, Sizes) { check(wrong_sizes()); }
TEST_F(WrongInputTable, Choices) { check(wrong_choices()); }
TEST_F(WrongInputTable, EmptyValues) { check(wrong_empties()); }
TEST_F(WrongInputTable, Combinations) { check(wrong_combinations()); }

class WrongFileTable : public WrongInputTable {
 protected:
  void SetUp() override {
    WrongInputTable::SetUp();
    refused_at_once_ = false;
    write_odd_nodes(folder_);
    write_damaged_archives(folder_);
    write_damaged_tables(folder_);
    write_damaged_arrays(folder_);
    write_damaged_images(folder_);
  }
};

TEST_F(WrongFileTable, Files) { check(wrong_files()); }
TEST_F(WrongFileTable, Records) { check(wrong_records()); }

TEST_F(WrongFileTable, Permissions) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  check(forbidden_files(folder_));
  for (const std::string path : {"secret.csv", "secret"}) {  // so that it can be removed
    std::filesystem::permissions(folder_ / path, std::filesystem::perms::owner_all);
  }
}

}  // namespace
}  // namespace headrace::test
