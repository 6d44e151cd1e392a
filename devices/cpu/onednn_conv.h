// Convolutions through oneDNN. Private to the CPU backend.
#pragma once

#include "headrace/devices/cpu/onednn_conv_plan.h"
#include "headrace/devices/cpu/onednn_operands.h"

namespace headrace {

// `bias` and `dbias` may be null.
BoundKernel conv_forward(OneDnn&, const ConvShape&, float* x, float* weights, float* bias, float* y, Activation);
BoundKernel conv_backward_data(OneDnn&, const ConvShape&, float* dy, float* weights, float* dx);
BoundKernel conv_backward_weights(OneDnn&, const ConvShape&, float* x, float* dy, float* dweights, float* dbias);

}  // namespace headrace
