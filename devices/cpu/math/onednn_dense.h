// Dense layers through oneDNN's matmul. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/cpu/math/onednn_operands.h"

namespace headrace {

// x (rows, inputs), weights (outputs, inputs), y (rows, outputs).
struct DenseShape {
  std::int64_t rows = 0, inputs = 0, outputs = 0;
  Precision precision = Precision::kF32;
};

// `bias` and `dbias` may be null.
BoundKernel dense_forward(OneDnn&, const DenseShape&, const Operand& x, const Operand& weights, float* bias,
                          const Operand& y, Activation);
BoundKernel dense_backward_data(OneDnn&, const DenseShape&, const Operand& dy, const Operand& weights,
                                const Operand& dx);
BoundKernel dense_backward_weights(OneDnn&, const DenseShape&, const Operand& x, const Operand& dy,
                                   float* dweights, float* dbias);

}  // namespace headrace
