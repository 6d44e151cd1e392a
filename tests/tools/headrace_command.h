// The command as a user runs it, and what it says in JSON.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "headrace/devices/base/clock.h"
#include "headrace/tests/support/command.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

inline const std::filesystem::path kFashion = "/usr/share/datasets/fashion-mnist";

// Moves the lines that say how data were read from the errors to `reading`.
inline CommandResult with_reading_apart(CommandResult result) {
  std::istringstream errors(std::exchange(result.errors, {}));
  for (std::string line; std::getline(errors, line);) {
    (line.starts_with("headrace: reading ") ? result.reading : result.errors) += line + (errors.eof() ? "" : "\n");
  }
  return result;
}

inline CommandResult headrace(std::vector<std::string> arguments, const std::vector<std::string>& more = {}) {
  arguments.insert(arguments.begin(), HEADRACE_BINARY);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return with_reading_apart(run_command(arguments));
}

using Lines = std::vector<nlohmann::json>;

// The lines that it writes with --json; it must succeed.
inline Lines json_of(std::vector<std::string> arguments) {
  const CommandResult result = headrace(std::move(arguments), {"--json", "-"});
  EXPECT_EQ(result.status, 0) << result.errors;
  Lines lines;
  std::istringstream text(result.output);
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

inline void expect_keys(const nlohmann::json& line, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) EXPECT_TRUE(line.contains(key)) << key << " is missing in " << line;
}

// A command that is looked at, and sent signals, while it runs.

// A command that runs while the test goes on; its output goes into a file.
class RunningCommand {
 public:
  // `variables`: "NAME=value", besides those of the test.
  RunningCommand(std::vector<std::string> arguments, std::filesystem::path output,
                 std::vector<std::string> variables = {})
      : output_(std::move(output)) {
    arguments.insert(arguments.begin(), HEADRACE_BINARY);
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    child_ = fork();
    if (child_ != 0) return;
    const int file = open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    for (std::string& variable : variables) putenv(variable.data());
    execv(words.front(), words.data());
    _exit(127);
  }

  bool ended() {
    if (!ended_) ended_ = waitpid(child_, &status_, WNOHANG) == child_;
    return ended_;
  }
  // Waits for what it does meanwhile; false where it ends before, or a minute is over.
  bool wait_until(const std::function<bool()>& done) {
    const Stopwatch watch;
    while (!done()) {
      if (ended() || watch.seconds() > 60) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  void send(int signal) const { kill(child_, signal); }
  // As a shell says it.
  int wait() {
    if (!ended_) waitpid(child_, &status_, 0);
    ended_ = true;
    return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  }
  std::string output() const {
    const std::vector<std::byte> bytes = read_whole_file(output_);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::filesystem::path output_;
  pid_t child_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

// What the command's help lists.

// "bench", "input".
using CommandPath = std::vector<std::string>;

inline std::string help_of(CommandPath command) {
  command.emplace_back("--help");
  return headrace(command).output;
}

// Those that a command's help lists.
inline std::vector<std::string> commands_in(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help.substr(std::min(help.find("\nCommands:\n"), help.size())));
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 2 && line.starts_with("  ") && line[2] != ' ')
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

// `above` and all commands below it.
inline std::vector<CommandPath> all_commands(const CommandPath& above = {}) {
  std::vector<CommandPath> all{above};
  CommandPath below = above;
  below.emplace_back();
  for (const std::string& name : commands_in(help_of(above))) {
    below.back() = name;
    std::ranges::move(all_commands(below), std::back_inserter(all));
  }
  return all;
}

// Those that a command's help lists: "--data".
inline std::set<std::string> options_in(const std::string& help) {
  std::set<std::string> names;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("--");
    if (line.starts_with("  -") && at != std::string::npos)
      names.insert(line.substr(at, line.find_first_of(" ,", at) - at));
  }
  return names;
}

// A row of the table of wrong inputs (wrong_inputs_test.cpp).

struct WrongInput {
  std::string line;   // arguments between blanks; 'one with blanks'; @ stands for the folder of inputs
  int status;         // 2: asked wrongly; 1: the run failed
  std::string words;  // that the message must have; where they end a line, all of it after "headrace: "
};

using WrongInputs = std::vector<WrongInput>;

}  // namespace headrace::test
