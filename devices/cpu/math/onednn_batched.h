// Products of many matrices through oneDNN's matmul. Private to the CPU backend.
#pragma once

#include "headrace/devices/cpu/math/onednn_operands.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// Each matrix is one thread's work, so that no bit depends on the number of threads.
BoundKernel batched_matmul(OneDnn&, const Kernels::Matrices& a, const Kernels::Matrices& b, float alpha,
                           const Kernels::Matrices& result, Precision);

}  // namespace headrace
