// A view of elements in a device's memory. Owns nothing; copying it copies a pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/dtype.h"
#include "headrace/devices/base/shape.h"

namespace HEADRACE_API headrace {

// Whether T is the type of a DType's elements.
template <typename T>
inline constexpr bool kIsElement =
    std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t> ||
    std::is_same_v<T, float> || std::is_same_v<T, BFloat16>;

struct TensorView {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::kF32;

  std::int64_t elements() const noexcept { return shape.elements(); }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(elements()) * size_of(dtype); }
  bool defined() const noexcept { return data != nullptr; }

  // Returns the elements as T, or as bytes or structures; null of an undefined view. Throws ConfigError if T is
  // the type of other elements. REQUIRES: the host may read the memory.
  template <typename T>
  T* as() const {
    using Element = std::remove_const_t<T>;
    if constexpr (kIsElement<Element>) {
      if (data != nullptr && dtype != dtype_of<Element>()) [[unlikely]]
        refuse_elements(shape, dtype, dtype_of<Element>());
    }
    return static_cast<T*>(data);
  }
};

}  // namespace headrace
