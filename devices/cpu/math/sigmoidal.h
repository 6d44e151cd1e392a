// Functions of one element that are no activations of other kernels. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/kernels.h"

namespace headrace::cpu {

// T is float or BFloat16.
template <typename T>
void sigmoidal(Sigmoidal sigmoidal, const T* x, T* y, std::int64_t count);
// From the forward result y.
template <typename T>
void sigmoidal_backward(Sigmoidal sigmoidal, const T* y, const T* dy, T* dx, std::int64_t count);

}  // namespace headrace::cpu
