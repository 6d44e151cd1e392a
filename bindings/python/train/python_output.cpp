#include "headrace/bindings/python/train/python_output.h"

#include <nanobind/nanobind.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace headrace::python {
namespace {

namespace nb = nanobind;

nb::object python_stdout() { return nb::module_::import_("sys").attr("stdout"); }

bool is_our_terminal(const nb::object& output) {
  try {
    return isatty(STDOUT_FILENO) != 0 && nb::cast<int>(output.attr("fileno")()) == STDOUT_FILENO;
  } catch (const std::exception&) {
    return false;  // a stream without a file, as a notebook's
  }
}

// Progress is no reason to end a training: what Python raises here is dropped.
ssize_t write_to_python(void* /*cookie*/, const char* text, std::size_t size) {
  const nb::gil_scoped_acquire lock;
  try {
    const nb::object output = python_stdout();
    if (!output.is_none()) {
      output.attr("write")(nb::bytes(text, size).attr("decode")("utf-8", "replace"));
      output.attr("flush")();
    }
  } catch (const std::exception&) {
    return static_cast<ssize_t>(size);
  }
  return static_cast<ssize_t>(size);
}

}  // namespace

PythonOutput::PythonOutput() {
  const nb::object output = python_stdout();
  if (!output.is_none() && is_our_terminal(output)) {
    output.attr("flush")();
    return;
  }
  file_ =
      fopencookie(nullptr, "w", {.read = nullptr, .write = write_to_python, .seek = nullptr, .close = nullptr});
  if (file_ == nullptr) throw std::system_error(errno, std::generic_category(), "standard output");
}

PythonOutput::~PythonOutput() {
  if (file_ != stdout) std::fclose(file_);
}

}  // namespace headrace::python
