// Python's sys.stdout as a C stream: what a notebook shows is what is written there.
#pragma once

#include <cstdio>

namespace headrace::python {

// The process's own standard output where sys.stdout is that and a terminal, so that the live bar works.
class PythonOutput {
 public:
  PythonOutput();  // with the interpreter's lock
  ~PythonOutput();
  PythonOutput(const PythonOutput&) = delete;
  PythonOutput& operator=(const PythonOutput&) = delete;

  std::FILE* file() const noexcept { return file_; }

 private:
  std::FILE* file_ = stdout;
};

}  // namespace headrace::python
