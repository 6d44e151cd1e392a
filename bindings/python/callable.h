// Python objects that C++ threads own and call.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <span>

#include "headrace/bindings/python/errors.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/record.h"

namespace headrace::python {

// From now on no thread enters Python any more: called as the interpreter ends, after all loaders have stopped.
void refuse_to_enter() noexcept;
bool is_refused() noexcept;

// A Python object that any thread may share and let go of.
using SharedObject = std::shared_ptr<PyObject>;
SharedObject share(nanobind::object object);

// A Python function that the engine's threads call.
class PythonCallable {
 public:
  explicit PythonCallable(nanobind::object function) : function_(share(std::move(function))) {}

  // body(function) with the GIL. What Python raises is thrown as raise_as_error() does.
  template <typename Body>
  auto call(const Body& body) const {
    if (is_refused()) throw Error(ErrorCode::kCancelled, "the interpreter has ended");
    const nanobind::gil_scoped_acquire here;
    if (!here.is_valid()) throw Error(ErrorCode::kCancelled, "the interpreter has ended");
    try {
      return body(nanobind::handle(function_.get()));
    } catch (nanobind::python_error& raised) {
      raise_as_error(raised);
    }
  }

 private:
  SharedObject function_;
};

// A copy of a field's elements as a NumPy array; of an encoded image as bytes.
nanobind::object array_of(std::span<const std::byte> bytes, const Field& field, const Shape& shape);

// The bytes of an object with a C-ordered buffer, such as an array or bytes, while this lives. With the GIL.
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

// The same with an owner that any thread may let go of.
struct SharedBuffer {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};
SharedBuffer share_buffer(nanobind::handle object);

}  // namespace headrace::python
