// Convolutions through oneDNN. Private to the CPU backend.
#pragma once

#include "headrace/devices/cpu/math/onednn_conv_plan.h"
#include "headrace/devices/cpu/math/onednn_operands.h"

namespace headrace {

// `bias` and `dbias` may be null.
BoundKernel conv_forward(OneDnn&, const ConvShape&, const Operand& x, const Operand& weights, float* bias,
                         const Operand& y, Activation);
BoundKernel conv_backward_data(OneDnn&, const ConvShape&, const Operand& dy, const Operand& weights,
                               const Operand& dx);
BoundKernel conv_backward_weights(OneDnn&, const ConvShape&, const Operand& x, const Operand& dy, float* dweights,
                                  float* dbias);

}  // namespace headrace
