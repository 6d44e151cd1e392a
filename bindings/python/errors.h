// Errors on their way between Python and C++.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::python {

// With the GIL. What a Python callable raised, as a headrace::Error with its text, "ValueError: ... (at
// file.py:12)". When that error arrives in Python, the exception is its cause. KeyboardInterrupt and SystemExit
// are nobody's record: they cancel the run, and Python is told of the interrupt again.
[[noreturn]] void raise_as_error(nanobind::python_error& raised);

// Takes the GIL, and throws what Python's signal handlers raised, as KeyboardInterrupt; Error(kCancelled) where
// Python has ended.
void check_signals();

}  // namespace headrace::python
