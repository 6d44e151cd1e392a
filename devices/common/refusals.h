// How the checks of kernels' arguments refuse: ConfigError, with the kernel's name in front.
#pragma once

#include <string>

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/devices/kernels.h"

namespace headrace::check {

[[noreturn]] inline void refuse(const char* kernel, const std::string& what) {
  throw ConfigError(fmt::format("{}: {}", kernel, what));
}

// Refuses unless the rule about two shapes holds.
inline void need(bool holds, const char* kernel, const char* rule, const TensorView& a, const TensorView& b) {
  if (!holds)
    refuse(kernel, fmt::format("{}; the shapes are {} and {}", rule, a.shape.to_string(), b.shape.to_string()));
}

}  // namespace headrace::check
