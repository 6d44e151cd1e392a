// Python's sys.stdout as a C stream, so that notebooks show the output.
#pragma once

#include <nanobind/nanobind.h>
#include <sys/types.h>

#include <cstddef>
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
  static ssize_t write(void* cookie, const char* text, std::size_t size);

  std::FILE* file_ = stdout;
  bool lost_ = false;  // takes no more text
};

}  // namespace headrace::python
