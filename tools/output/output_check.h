// Checks that a command can write where it is told to, and does not write to what it reads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headrace::tools {

struct CommonOptions;
struct ErrorOptions;

// An option and the path it names; empty: it was not given.
struct NamedPath {
  const char* option;
  std::filesystem::path path;
};

// Before any output is opened. ConfigError where an output is a folder, an input, a file in an input that is a
// folder, or another output; DataError where it cannot be written. Standard output ("-") is neither.
void check_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs);

// The same with --quarantine among the outputs. That file is appended to: one that exists must be a quarantine
// file, and may lie in a folder that is read.
void check_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs,
                   const ErrorOptions& errors);

// The same of --json, --quarantine and `more` outputs against --data and a --cache that is a folder.
void check_outputs(const CommonOptions& options, std::vector<NamedPath> more = {});

}  // namespace headrace::tools
