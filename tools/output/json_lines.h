// Machine-readable results: one JSON object a line, into a file or standard output.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "headrace/devices/base/file_writer.h"

namespace headrace::tools {

// A new file grows line by line. One that exists is replaced by finish(): a run that fails leaves it as it was.
class JsonLines {
 public:
  // `target`: a path, "-" for standard output, or empty: then lines are dropped.
  explicit JsonLines(const std::string& target);

  // Written and flushed at once, keys in the order given. A terminal gets ASCII: it cannot obey what names hold.
  void write(const nlohmann::ordered_json& object);
  // After the last line.
  void finish();

  // True when the lines go to standard output: everything meant for people then goes to standard error.
  bool on_stdout() const noexcept { return on_stdout_; }
  // Where text for people goes.
  std::FILE* people() const noexcept { return on_stdout() ? stderr : stdout; }

 private:
  bool on_stdout_ = false;
  bool on_terminal_ = false;
  std::optional<FileWriter> file_;
};

}  // namespace headrace::tools
