// Machine-readable results: one JSON object a line, into a file or standard output.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace headrace::tools {

class JsonLines {
 public:
  // `target`: a path, "-" for standard output, or empty: then lines are dropped.
  explicit JsonLines(const std::string& target);
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  // Written and flushed at once, keys in the order given.
  void write(const nlohmann::ordered_json& object);

  // True when the lines go to standard output: everything meant for people then goes to standard error.
  bool on_stdout() const noexcept { return file_ == stdout; }
  // Where text for people goes.
  std::FILE* people() const noexcept { return on_stdout() ? stderr : stdout; }

 private:
  std::FILE* file_ = nullptr;
};

}  // namespace headrace::tools
