// Python objects that C++ threads own and call.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "headrace/bindings/python/module.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/record.h"

namespace headrace::python {

// Keeps threads from entering Python, from now on; waits briefly for those already there, and returns whether any
// are left. Called without the GIL as the interpreter ends, by the thread that ends it.
bool end_of_python() noexcept;
bool is_refused() noexcept;

// Ends what C++ holds of Python's objects, so that those of a program that has ended go in their turn: its open
// files are written, its __del__() is called. Nothing calls them afterwards. REQUIRES: the GIL, after
// end_of_python().
void let_go_of_objects();

// Keeps the calling thread permanently.
[[noreturn]] void stay_for_good();

// Calls into Python's own code, where a thread may wait for the GIL. Before Python 3.14 a thread that gets none,
// since the interpreter ends, is torn out of its stack, which ends the process where C++ stands below: it stays
// here instead. REQUIRES: `call` has no objects with destructors.
template <typename Call>
auto stay_in_python(const Call& call) {
  try {
    return call();
  } catch (const abi::__forced_unwind&) {
    stay_for_good();
  }
}

// The GIL, for a thread of C++. An engine thread keeps its Python thread state from its first call until its
// work ends: making one for each call takes longer than a small function does.
class Gil {
 public:
  Gil();
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Returns function(arguments...). REQUIRES: the GIL.
template <typename... Arguments>
nanobind::object call_function(nanobind::handle function, const Arguments&... arguments) {
  PyObject* const given[] = {arguments.ptr()..., nullptr};
  PyObject* const result =
      stay_in_python([&] { return PyObject_Vectorcall(function.ptr(), given, sizeof...(arguments), nullptr); });
  if (result == nullptr) throw nanobind::python_error();
  return nanobind::steal(result);
}

// Releases the GIL while this lives. A thread that returns after the interpreter has begun to end stays here
// permanently: before Python 3.14 it would be torn out of C++, which ends the process.
class WithoutGil {
 public:
  WithoutGil() noexcept : state_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// Takes the GIL, and throws what Python's signal handlers raised, such as KeyboardInterrupt; Error(kCancelled) if
// Python has ended.
void check_signals();

// Looks for signals while its thread waits for a pass over all records.
class SignalPoll {
  ScanPoll poll_{check_signals};
};

// For functions that wait, or that call Python from other threads.
using Unlocked = nanobind::call_guard<WithoutGil, SignalPoll>;

// An engine thread that is in Python, or entering it.
class Visit {
 public:
  Visit();  // throws Error(kCancelled) if Python has ended
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
};

// A Python object that any thread may share and release.
using SharedObject = std::shared_ptr<PyObject* const>;
SharedObject share(nanobind::object object);
// Returns the object. Throws Error(kCancelled) once C++ has let go of it.
nanobind::handle object_of(const SharedObject& shared);

// A function of a plan. Python's garbage collector sees it through this, an object of Python's: a cycle from the
// function to a dataset that calls it is found. REQUIRES: whoever has the plan and is itself seen by the collector
// holds this, too, and stops its threads before the collector clears anything, in __del__().
class PlanFunction {
 public:
  explicit PlanFunction(nanobind::object function) : function_(share(std::move(function))) {}
  const SharedObject& shared() const noexcept { return function_; }

 private:
  SharedObject function_;
};

// A Python function, or an object with methods, that C++ threads call.
class PythonCallable {
 public:
  explicit PythonCallable(nanobind::object function) : function_(share(std::move(function))) {}
  explicit PythonCallable(const PlanFunction& function) : function_(function.shared()) {}

  // Calls body(function) with the GIL. Throws Python exceptions as raise_as_error() does.
  template <typename Body>
  auto call(const Body& body) const {
    const Visit visit;
    const Gil here;
    try {
      return body(object_of(function_));
    } catch (nanobind::python_error& raised) {
      raise_as_error(raised);
    }
  }

  // Calls body(function) with the GIL for a run of the trainer. Throws Python exceptions as raise_from_run() does.
  template <typename Body>
  auto call_in_run(const std::string& where, const Body& body) const {
    const Visit visit;
    const Gil here;
    try {
      return body(object_of(function_));
    } catch (nanobind::python_error& raised) {
      raise_from_run(raised, where);
    }
  }

  const SharedObject& object() const noexcept { return function_; }

 private:
  SharedObject function_;
};

// Returns NumPy's type. Throws ConfigError for bf16.
nanobind::dlpack::dtype numpy_type(DType dtype);

// Returns a copy of a field's elements as a NumPy array; of an encoded image as bytes.
nanobind::object array_of(std::span<const std::byte> bytes, const Field& field, const Shape& shape);

// The bytes of an object with a C-ordered buffer, such as an array or bytes, while this lives. REQUIRES: the GIL.
class BufferView {
 public:
  explicit BufferView(nanobind::handle object);
  ~BufferView() { PyBuffer_Release(&view_); }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

// A buffer with an owner that any thread may release.
struct SharedBuffer {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};
SharedBuffer share_buffer(nanobind::handle object);

}  // namespace headrace::python
