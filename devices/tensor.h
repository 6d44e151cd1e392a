// A view of elements in a device's memory. Owns nothing; copying it copies a pointer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/shape.h"

namespace HEADRACE_API headrace {

struct TensorView {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::kF32;

  std::int64_t elements() const noexcept { return shape.elements(); }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(elements()) * size_of(dtype); }
  bool defined() const noexcept { return data != nullptr; }

  // Returns the elements as T. REQUIRES: T matches dtype; the host may read the memory.
  template <typename T>
  T* as() const noexcept {
    return static_cast<T*>(data);
  }
};

}  // namespace headrace
