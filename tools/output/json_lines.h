// Machine-readable results: one JSON object per line, to a file or standard output.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "headrace/devices/base/file_writer.h"

namespace headrace::tools {

// Writes a new file line by line. finish() replaces an existing file: a run that fails leaves it unchanged.
class JsonLines {
 public:
  // `target`: a path, "-" for standard output, or empty to drop the lines.
  explicit JsonLines(const std::string& target);

  // Writes and flushes a line at once, keys in the order given. A terminal gets ASCII, so that names cannot
  // control it.
  void write(const nlohmann::ordered_json& object);
  // Called after the last line.
  void finish();

  // Returns whether the lines go to standard output: text for people then goes to standard error.
  bool on_stdout() const noexcept { return on_stdout_; }
  // Returns the stream for text for people.
  std::FILE* people() const noexcept { return on_stdout() ? stderr : stdout; }

 private:
  bool on_stdout_ = false;
  bool on_terminal_ = false;
  std::optional<FileWriter> file_;
};

}  // namespace headrace::tools
