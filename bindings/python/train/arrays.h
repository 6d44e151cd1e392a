// Converts lists of numbers to NumPy arrays, and shapes to tuples.
#pragma once

#include <nanobind/ndarray.h>

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "headrace/devices/base/shape.h"

namespace headrace::python {

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

}  // namespace headrace::python
