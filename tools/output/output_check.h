// Checks that a command can write its outputs, and that they are not among its inputs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headrace::tools {

struct CommonOptions;
struct ErrorOptions;

// An option and its path; empty: not given.
struct NamedPath {
  const char* option;
  std::filesystem::path path;
};

// Throws ConfigError if an output is a folder, an input, a file in an input folder, or another output; DataError
// if it cannot be written. Standard output ("-") is none of these. REQUIRES: called before any output is opened.
void check_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs);

// Checks outputs that include --quarantine. That file is appended to: an existing one must be a quarantine file,
// and may lie in a folder that is read.
void check_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& inputs,
                   const ErrorOptions& errors);

// Checks --json, --quarantine and `more` outputs against --data and a --cache that is a folder.
void check_outputs(const CommonOptions& options, std::vector<NamedPath> more = {});

}  // namespace headrace::tools
