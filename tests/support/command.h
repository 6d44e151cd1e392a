// Runs a program as a user would and keeps what it said.
#pragma once

#include "headrace/tests/support/test.h"

namespace headrace::test {

struct CommandResult {
  int status = -1;           // exit status; 128 + signal when killed
  std::string output;        // standard output
  std::string errors;        // standard error
  std::string reading = {};  // what of it says how data were read, if a test tells it apart
};

// `arguments[0]` is the program. Standard input is empty. Throws std::runtime_error when it cannot be started.
CommandResult run_command(const std::vector<std::string>& arguments);

// Runs a program on a terminal of its own, as a user sees it.

struct TerminalRun {
  int status = -1;   // exit status; 128 + signal when killed
  std::string text;  // all that reached the terminal, output and errors alike
};

// On a pseudo-terminal that is so many columns wide. Where `interrupt_at` is not empty, Ctrl-C is typed once that
// text has appeared. Throws std::runtime_error when there is no terminal to be had.
TerminalRun run_on_terminal(const std::vector<std::string>& arguments, int columns,
                            const std::string& interrupt_at = {});

// What stands on a screen of that width after the text, one string a line, and where the cursor is: lines that are
// too long go on in the next one, "\r" and "\033[K" do as on a terminal.
struct Screen {
  std::vector<std::string> lines;
  int wrapped = 0;  // how often a line went on in the next one
};
Screen shown(const std::string& text, int columns);

}  // namespace headrace::test
