// The command as a user runs it, and what it says in JSON.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "headrace/tests/support/command.h"

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

}  // namespace headrace::test
