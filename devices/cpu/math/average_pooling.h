// Average pooling over channels-last images. Private to the CPU backend.
#pragma once

#include "headrace/devices/cpu/math/pooling.h"

namespace headrace::cpu {

// T is float or BFloat16.
template <typename T>
void average_pool_forward(const PoolGeometry& geometry, const T* x, T* y);
template <typename T>
void average_pool_backward(const PoolGeometry& geometry, const T* dy, T* dx);

}  // namespace headrace::cpu
