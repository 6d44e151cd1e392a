// Runs a program as a user would and keeps what it said.
#pragma once

#include <string>
#include <vector>

namespace headrace::test {

struct CommandResult {
  int status = -1;           // exit status; 128 + signal when killed
  std::string output;        // standard output
  std::string errors;        // standard error
  std::string reading = {};  // what of it says how data were read, if a test tells it apart
};

// `arguments[0]` is the program. Standard input is empty. Throws std::runtime_error when it cannot be started.
CommandResult run_command(const std::vector<std::string>& arguments);

}  // namespace headrace::test
