// What the checks of kernels are made of: each breach is a ConfigError with the kernel's name in front. Private to
// kernel_checks.cpp and training_checks.cpp.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/kernels.h"

namespace headrace::kernel {

using Name = const char*;  // of a kernel, in errors

// Whether a tensor may also be bf16: activations, and the weights of products in that precision.
enum class Half { kRefused, kAccepted };
constexpr Half half_weights(Precision precision) noexcept {
  return precision == Precision::kBF16 ? Half::kAccepted : Half::kRefused;
}

[[noreturn]] inline void refuse(Name kernel, const std::string& what) {
  throw ConfigError(std::string(kernel) + ": " + what);
}

// Refuses unless the rule about two shapes holds.
inline void need(bool holds, Name kernel, const char* rule, const TensorView& a, const TensorView& b) {
  if (holds) return;
  refuse(kernel, std::string(rule) + "; the shapes are " + a.shape.to_string() + " and " + b.shape.to_string());
}

// At least one axis, no empty extent.
inline void tensor(Name kernel, const char* name, const TensorView& view, Half half = Half::kRefused) {
  if (!view.defined()) refuse(kernel, fmt::format("{} is undefined", name));
  const bool accepted = half == Half::kAccepted;
  if (view.dtype != DType::kF32 && !(accepted && view.dtype == DType::kBF16)) {
    refuse(kernel, fmt::format("{} is {}, it must be float32{}", name, to_string(view.dtype),
                               accepted ? " or bfloat16" : ""));
  }
  bool empty = view.shape.rank() == 0;
  for (const std::int64_t extent : view.shape.extents()) empty = empty || extent <= 0;
  if (empty) refuse(kernel, fmt::format("{} has the empty shape {}", name, view.shape.to_string()));
}

inline void ranked(Name kernel, const char* name, const TensorView& view, int rank, Half half = Half::kRefused) {
  tensor(kernel, name, view, half);
  if (view.shape.rank() == rank) return;
  refuse(kernel, fmt::format("{} has shape {}, it must have {} axes", name, view.shape.to_string(), rank));
}

inline void vector_of(Name kernel, const char* name, const TensorView& view, std::int64_t length) {
  ranked(kernel, name, view, 1);
  if (view.elements() == length) return;
  refuse(kernel, fmt::format("{} has shape {}, it must have {} elements", name, view.shape.to_string(), length));
}

inline void numbers(Name kernel, const char* name, const TensorView& view, std::int64_t elements) {
  tensor(kernel, name, view);
  if (view.elements() == elements) return;
  refuse(kernel, fmt::format("{} has {} elements, it must have {}", name, view.elements(), elements));
}

inline void of_one_type(Name kernel, const TensorView& a, const TensorView& b) {
  if (a.dtype == b.dtype) return;
  refuse(kernel, fmt::format("all activations of a call must be of one type, not {} and {}", to_string(a.dtype),
                             to_string(b.dtype)));
}

inline void same(Name kernel, const TensorView& view, const TensorView& like, Half half = Half::kRefused) {
  tensor(kernel, "an argument", view, half);
  need(view.shape == like.shape, kernel, "all tensors must have the same shape", view, like);
  of_one_type(kernel, view, like);
}

// All are like the first.
inline void alike(Name kernel, std::initializer_list<TensorView> views, Half half = Half::kRefused) {
  for (const TensorView& view : views) same(kernel, view, *views.begin(), half);
}

// One f32 for each of x's channels, if the vector is defined.
inline void channels(Name kernel, const TensorView& vector, const TensorView& x) {
  vector_of(kernel, "a coefficient vector", vector, x.shape.back());
}
inline void channels_if_defined(Name kernel, std::initializer_list<TensorView> vectors, const TensorView& x) {
  for (const TensorView& vector : vectors) {
    if (vector.defined()) channels(kernel, vector, x);
  }
}

inline void fused(Name kernel, Activation activation) {
  if (!is_fused(activation)) refuse(kernel, "the activation needs a pass of its own");
}

}  // namespace headrace::kernel
