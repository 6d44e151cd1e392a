// Element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

enum class DType : std::uint8_t { kU8, kI32, kI64, kF16, kBF16, kF32 };

constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kU8: return 1;
    case DType::kF16:
    case DType::kBF16: return 2;
    case DType::kI32:
    case DType::kF32: return 4;
    case DType::kI64: return 8;
  }
  return 0;
}

// Returns NumPy's name: "uint8", "int32", "int64", "float16", "bfloat16" or "float32".
constexpr const char* to_string(DType dtype) noexcept {
  switch (dtype) {
    case DType::kU8: return "uint8";
    case DType::kI32: return "int32";
    case DType::kI64: return "int64";
    case DType::kF16: return "float16";
    case DType::kBF16: return "bfloat16";
    case DType::kF32: return "float32";
  }
  return "unknown";
}

template <typename T>
constexpr DType dtype_of() noexcept;
template <>
constexpr DType dtype_of<std::uint8_t>() noexcept {
  return DType::kU8;
}
template <>
constexpr DType dtype_of<std::int32_t>() noexcept {
  return DType::kI32;
}
template <>
constexpr DType dtype_of<std::int64_t>() noexcept {
  return DType::kI64;
}
template <>
constexpr DType dtype_of<float>() noexcept {
  return DType::kF32;
}

}  // namespace headrace
