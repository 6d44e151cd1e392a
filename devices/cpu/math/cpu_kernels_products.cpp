// The functions of the CPU's table for dense layers and convolutions.
#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/math/conv_bias.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/cpu_submission.h"
#include "headrace/devices/cpu/math/depthwise.h"
#include "headrace/devices/cpu/math/onednn_batched.h"
#include "headrace/devices/cpu/math/onednn_conv.h"
#include "headrace/devices/cpu/math/onednn_dense.h"
#include "headrace/devices/cpu/math/sums.h"

namespace headrace::cpu {
namespace {

DenseShape dense_shape(const TensorView& x, const TensorView& weights, Precision precision) {
  return {.rows = x.shape[0], .inputs = x.shape[1], .outputs = weights.shape[0], .precision = precision};
}

ConvShape conv_shape(const TensorView& x, const TensorView& weights, const TensorView& y,
                     const ConvOptions& options) {
  return {.images = x.shape[0],
          .height = x.shape[1],
          .width = x.shape[2],
          .channels = x.shape[3],
          .out_height = y.shape[1],
          .out_width = y.shape[2],
          .outputs = y.shape[3],
          .kernel_height = weights.shape[1],
          .kernel_width = weights.shape[2],
          .options = options};
}

Operand operand(const TensorView& view) noexcept { return {.place = {.pointer = view.data}, .type = view.dtype}; }

void submit_column_sums(Stream& stream, const char* kernel, const TensorView& matrix, const TensorView& sums) {
  if (!sums.defined()) return;
  check::same(kernel, matrix, matrix, kHalf);
  check::channels(kernel, sums, matrix);
  submit(stream, [=] {
    with_type(matrix, [&]<typename T>(T) {
      cpu::column_sums(matrix.as<T>(), f32(sums), matrix.elements() / sums.elements(), sums.elements());
    });
  });
}

}  // namespace

void CpuKernels::dense_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                               const TensorView& bias, const TensorView& y, Activation activation,
                               Precision precision) {
  check::fused("dense_forward", activation);
  check::dense("dense_forward", x, weights, bias, y, kHalf, check::half_weights(precision));
  submit(stream, headrace::dense_forward(onednn_, dense_shape(x, weights, precision), operand(x), operand(weights),
                                         f32(bias), operand(y), activation));
}

void CpuKernels::dense_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                                     const TensorView& dx, Precision precision) {
  check::dense("dense_backward_data", dx, weights, {}, dy, kHalf, check::half_weights(precision));
  submit(stream, headrace::dense_backward_data(onednn_, dense_shape(dx, weights, precision), operand(dy),
                                               operand(weights), operand(dx)));
}

void CpuKernels::dense_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                        const TensorView& dweights, const TensorView& dbias, Precision precision) {
  check::dense("dense_backward_weights", x, dweights, dbias, dy, kHalf);
  submit(stream, headrace::dense_backward_weights(onednn_, dense_shape(x, dweights, precision), operand(x),
                                                  operand(dy), f32(dweights), f32(dbias)));
}

void CpuKernels::batched_matmul(Stream& stream, const Matrices& a, const Matrices& b, float alpha,
                                const Matrices& result, Precision precision) {
  check::batched_matmul("batched_matmul", a, b, result, kHalf);
  submit(stream, headrace::batched_matmul(onednn_, a, b, alpha, result, precision));
}

void CpuKernels::conv_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                              const TensorView& bias, const TensorView& y, const ConvOptions& options,
                              Activation activation) {
  check::fused("conv_forward", activation);
  check::convolution("conv_forward", x, weights, bias, y, options, kHalf, check::half_weights(options.precision));
  submit(stream, headrace::conv_forward(onednn_, conv_shape(x, weights, y, options), operand(x), operand(weights),
                                        f32(bias), operand(y), activation));
}

void CpuKernels::conv_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                                    const TensorView& dx, const ConvOptions& options) {
  check::convolution("conv_backward_data", dx, weights, {}, dy, options, kHalf,
                     check::half_weights(options.precision));
  submit(stream, headrace::conv_backward_data(onednn_, conv_shape(dx, weights, dy, options), operand(dy),
                                              operand(weights), operand(dx)));
}

void CpuKernels::conv_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                       const TensorView& dweights, const TensorView& dbias,
                                       const ConvOptions& options) {
  if (!dweights.defined()) return submit_column_sums(stream, "conv_backward_weights", dy, dbias);
  check::convolution("conv_backward_weights", x, dweights, dbias, dy, options, kHalf);
  submit(stream, headrace::conv_backward_weights(onednn_, conv_shape(x, dweights, dy, options), operand(x),
                                                 operand(dy), f32(dweights), f32(dbias)));
}

void CpuKernels::conv_bias_backward(Stream& stream, const TensorView& x, const TensorView& weights,
                                    const TensorView& bias, const TensorView& dy, const TensorView& dbias,
                                    const ConvOptions& options, Activation activation) {
  check::conv_bias("conv_bias_backward", x, weights, bias, dy, dbias, options, kHalf,
                   check::half_weights(options.precision));
  check::recomputed("conv_bias_backward", weights, options.groups == 1);
  submit(stream, [=, shape = conv_shape(x, weights, dy, options)] {
    with_type(x, [&]<typename T>(T) {
      with_type(weights, [&]<typename W>(W) {
        const cpu::ConvBiasOperands<T, W> operands{x.as<T>(), weights.as<W>(), f32(bias), dy.as<T>()};
        cpu::conv_bias_backward(shape, operands, activation, f32(dbias));
      });
    });
  });
}

void CpuKernels::depthwise_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                                   const TensorView& bias, const TensorView& y, const ConvOptions& options,
                                   Activation activation) {
  check::fused("depthwise_forward", activation);
  check::depthwise("depthwise_forward", x, weights, bias, y, options, kHalf);
  submit(stream, [=, shape = conv_shape(x, weights, y, options)] {
    with_type(x, [&]<typename T>(T) {
      cpu::depthwise_forward(shape, x.as<T>(), f32(weights), f32(bias), activation, y.as<T>());
    });
  });
}

void CpuKernels::depthwise_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                                         const TensorView& dx, const ConvOptions& options) {
  check::depthwise("depthwise_backward_data", dx, weights, {}, dy, options, kHalf);
  submit(stream, [=, shape = conv_shape(dx, weights, dy, options)] {
    with_type(dx,
              [&]<typename T>(T) { cpu::depthwise_backward_data(shape, dy.as<T>(), f32(weights), dx.as<T>()); });
  });
}

void CpuKernels::depthwise_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                            const TensorView& dweights, const TensorView& dbias,
                                            const ConvOptions& options) {
  submit_column_sums(stream, "depthwise_backward_weights", dy, dbias);
  if (!dweights.defined()) return;
  check::depthwise("depthwise_backward_weights", x, dweights, dbias, dy, options, kHalf);
  submit(stream, [=, shape = conv_shape(x, dweights, dy, options)] {
    with_type(
        x, [&]<typename T>(T) { cpu::depthwise_backward_weights(shape, x.as<T>(), dy.as<T>(), f32(dweights)); });
  });
}

}  // namespace headrace::cpu
