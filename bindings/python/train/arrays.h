// Shapes and lists of numbers as tuples and NumPy arrays, and arrays of the trainer's memory for one call of a
// Python function.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/bindings/python/callable.h"
#include "headrace/devices/base/shape.h"
#include "headrace/devices/tensor.h"

namespace headrace::python {

// Converts lists of numbers to NumPy arrays, and shapes to tuples.

inline nanobind::tuple tuple_of(const Shape& shape) {
  nanobind::list extents;
  for (const std::int64_t extent : shape.extents()) extents.append(extent);
  return nanobind::tuple(extents);
}

// Returns an array that owns the values.
template <typename Value>
nanobind::object array_of(std::vector<Value> values, const Shape& shape) {
  std::array<std::size_t, Shape::kMaxRank> extents{};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    extents[static_cast<std::size_t>(axis)] = static_cast<std::size_t>(shape[axis]);
  }
  auto* const owned = new std::vector<Value>(std::move(values));
  const nanobind::capsule owner(owned, [](void* held) noexcept { delete static_cast<std::vector<Value>*>(held); });
  return nanobind::cast(nanobind::ndarray<nanobind::numpy, Value>(
      owned->data(), static_cast<std::size_t>(shape.rank()), extents.data(), owner));
}

template <typename Value>
nanobind::object array_of(std::vector<Value> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return array_of(std::move(values), Shape{count});
}

// NumPy arrays of the trainer's memory, for one call of a Python function.

// Returns the view's first rows.
TensorView first_rows_of(const TensorView& view, std::int64_t rows);

// Makes arrays without copies, and knows whether any, or a view of any, is still held. REQUIRES: the GIL.
class LentArrays {
 public:
  // Throws ConfigError for bf16, which NumPy has not.
  nanobind::object array(const TensorView& view, bool writable);
  nanobind::object array(std::span<double> values);

  // Returns whether an array outlives the call that it was made for: its memory will be used for something else.
  // Collects garbage before it says so.
  bool are_held() const;

 private:
  nanobind::capsule owner() const;

  std::shared_ptr<std::atomic<int>> held_ = std::make_shared<std::atomic<int>>(0);
};

// Calls body(function, arrays) with the GIL for a run of the trainer. Throws ConfigError if the function kept an
// array, and Python's exceptions as PythonCallable::call_in_run() does.
template <typename Body>
void call_with_arrays(const PythonCallable& python, const std::string& where, const Body& body) {
  python.call_in_run(where, [&](nanobind::handle function) {
    LentArrays lent;
    body(function, lent);
    if (lent.are_held()) nanobind::module_::import_("headrace._lent").attr("refuse_kept")(where);
  });
}

}  // namespace headrace::python
