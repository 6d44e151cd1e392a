#include "headrace/tests/support/twin_kernels.h"

#include <cstring>

#include "headrace/devices/cuda/math/count_calls.h"
#include "headrace/devices/cuda/math/depthwise_calls.h"
#include "headrace/devices/cuda/math/direct_convolution_calls.h"
#include "headrace/devices/cuda/math/elementwise_calls.h"
#include "headrace/devices/cuda/math/loss_calls.h"
#include "headrace/devices/cuda/math/norm_calls.h"
#include "headrace/devices/cuda/math/optimizer_calls.h"
#include "headrace/devices/cuda/math/pooling_calls.h"
#include "headrace/devices/cuda/math/product_calls.h"
#include "headrace/devices/cuda/math/sequence_calls.h"

namespace headrace::cuda {

template class GpuKernels<test::HostLaunches>;

}  // namespace headrace::cuda

namespace headrace::test {
namespace {

constexpr int kX = 0, kDy = 1, kResult = 2;  // slots of temporaries

}  // namespace

TensorView TwinKernels::in_f32(Stream& stream, int slot, const TensorView& view) {
  if (view.dtype == DType::kF32) return view;
  const std::size_t bytes = static_cast<std::size_t>(view.elements()) * sizeof(float);
  Buffer& buffer = temporaries_[{&stream, slot}];
  if (buffer.size() < bytes) {
    outgrown_.push_back(std::exchange(buffer, cpu_.allocate(bytes)));
  }
  return buffer.view(view.shape, DType::kF32);
}

TensorView TwinKernels::filled(Stream& stream, int slot, const TensorView& view) {
  const TensorView values = in_f32(stream, slot, view);
  if (values.data != view.data) cpu_kernels().convert(stream, {view, values});
  return values;
}

void TwinKernels::product(Stream& stream, const kernel::DenseForward& of) {
  const TensorView y = in_f32(stream, kResult, of.y);
  cpu_kernels().dense_forward(stream,
                              {filled(stream, kX, of.x), of.weights, of.bias, y, Activation::kNone, of.precision});
  if (y.data != of.y.data) convert(stream, {y, of.y});
}

void TwinKernels::product(Stream& stream, const kernel::DenseBackwardData& of) {
  const TensorView dx = in_f32(stream, kResult, of.dx);
  cpu_kernels().dense_backward_data(stream, {filled(stream, kDy, of.dy), of.weights, dx, of.precision});
  if (dx.data != of.dx.data) convert(stream, {dx, of.dx});
}

void TwinKernels::product(Stream& stream, const kernel::DenseBackwardWeights& of) {
  cpu_kernels().dense_backward_weights(
      stream, {filled(stream, kX, of.x), filled(stream, kDy, of.dy), of.dweights, {}, of.precision});
}

void TwinKernels::product(Stream& stream, const kernel::BatchedMatmul& of) {
  kernel::BatchedMatmul wide = of;
  wide.result.tensor = in_f32(stream, kResult, of.result.tensor);
  wide.a.tensor = filled(stream, kX, of.a.tensor);
  wide.b.tensor = filled(stream, kDy, of.b.tensor);
  cpu_kernels().batched_matmul(stream, wide);
  if (wide.result.tensor.data != of.result.tensor.data) convert(stream, {wide.result.tensor, of.result.tensor});
}

void TwinKernels::product(Stream& stream, const kernel::ConvForward& of) {
  const TensorView y = in_f32(stream, kResult, of.y);
  cpu_kernels().conv_forward(stream,
                             {filled(stream, kX, of.x), of.weights, of.bias, y, of.options, Activation::kNone});
  if (y.data != of.y.data) convert(stream, {y, of.y});
}

void TwinKernels::product(Stream& stream, const kernel::ConvBackwardData& of) {
  const TensorView dx = in_f32(stream, kResult, of.dx);
  cpu_kernels().conv_backward_data(stream, {filled(stream, kDy, of.dy), of.weights, dx, of.options});
  if (dx.data != of.dx.data) convert(stream, {dx, of.dx});
}

void TwinKernels::product(Stream& stream, const kernel::ConvBackwardWeights& of) {
  cpu_kernels().conv_backward_weights(
      stream, {filled(stream, kX, of.x), filled(stream, kDy, of.dy), of.dweights, {}, of.options});
}

}  // namespace headrace::test
