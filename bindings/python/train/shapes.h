// Shapes as Python's tuples.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

#include "headrace/devices/base/shape.h"

namespace headrace::python {

inline nanobind::tuple tuple_of(const Shape& shape) {
  nanobind::list extents;
  for (const std::int64_t extent : shape.extents()) extents.append(extent);
  return nanobind::tuple(extents);
}

}  // namespace headrace::python
