// Python's sys.stdout as a C stream, so that notebooks show the output.
#pragma once

#include <cstdio>

namespace headrace::python {

// Uses the process's standard output if sys.stdout is that and a terminal, so that the live bar works.
class PythonOutput {
 public:
  PythonOutput();  // REQUIRES: the interpreter's lock
  ~PythonOutput();
  PythonOutput(const PythonOutput&) = delete;
  PythonOutput& operator=(const PythonOutput&) = delete;

  std::FILE* file() const noexcept { return file_; }

 private:
  std::FILE* file_ = stdout;
};

}  // namespace headrace::python
