// Converts errors between Python and C++.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace headrace::python {

// Throws a Python callable's exception as a headrace::Error with its text, "ValueError: ... (at file.py:12)". When
// that error arrives in Python, the exception is its cause. KeyboardInterrupt and SystemExit concern no record:
// they cancel the run, and Python is told of the interrupt again. REQUIRES: the GIL.
[[noreturn]] void raise_as_error(nanobind::python_error& raised);

// Throws the exception of a Python callable that a run of the trainer called as a headrace::Error, "WHERE:
// ValueError:
// ...". When that error arrives in Python, the exception itself is raised, with the error's text as a note.
// REQUIRES: the GIL.
[[noreturn]] void raise_from_run(nanobind::python_error& raised, const std::string& where);

}  // namespace headrace::python
