#include "headrace/bindings/python/train/python_output.h"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "headrace/bindings/python/train/interrupts.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;

nb::object python_stdout() { return nb::module_::import_("sys").attr("stdout"); }

bool is_our_terminal(const nb::object& output) {
  try {
    return isatty(STDOUT_FILENO) != 0 && nb::cast<int>(output.attr("fileno")()) == STDOUT_FILENO;
  } catch (const nb::python_error& raised) {  // a stream without a file, as a notebook's
    if (raised.matches(PyExc_Exception)) return false;
    throw;
  } catch (const nb::cast_error&) {
    return false;
  }
}

// Ends the run by the exception being handled.
void end_run(nb::python_error& raised) {
  if (!InterruptWatch::end_run()) raised.discard_as_unraisable("headrace's progress");
}

}  // namespace

// Progress is no reason to end a training: an output that takes no more is given none. What else Python code
// raises, an interrupt for example, ends the run.
ssize_t PythonOutput::write(void* cookie, const char* text, std::size_t size) {
  auto& lost = static_cast<PythonOutput*>(cookie)->lost_;
  const nb::gil_scoped_acquire lock;
  try {
    const nb::object output = lost ? nb::none() : python_stdout();
    if (!output.is_none()) {
      output.attr("write")(nb::bytes(text, size).attr("decode")("utf-8", "replace"));
      output.attr("flush")();
    }
  } catch (nb::python_error& raised) {
    lost = raised.matches(PyExc_OSError) || raised.matches(PyExc_ValueError);
    if (!lost) {
      end_run(raised);
    } else if (const nb::object kind = raised.type().attr("__name__");
               PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                                "sys.stdout takes no more text: %S: %S; no progress is shown", kind.ptr(),
                                raised.value().ptr()) != 0) {
      try {
        throw nb::python_error();  // warnings are errors
      } catch (nb::python_error& warning) {
        end_run(warning);
      }
    }
  }
  return static_cast<ssize_t>(size);
}

PythonOutput::PythonOutput() {
  const nb::object output = python_stdout();
  if (!output.is_none() && is_our_terminal(output)) {
    output.attr("flush")();
    return;
  }
  file_ = fopencookie(this, "w", {.read = nullptr, .write = write, .seek = nullptr, .close = nullptr});
  if (file_ == nullptr) throw std::system_error(errno, std::generic_category(), "standard output");
}

PythonOutput::~PythonOutput() {
  if (file_ != stdout) std::fclose(file_);
}

}  // namespace headrace::python
