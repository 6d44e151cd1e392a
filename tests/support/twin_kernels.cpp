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
  if (values.data != view.data) cpu_kernels().convert(stream, view, values);
  return values;
}

void TwinKernels::dense_product(Stream& stream, const TensorView& x, const TensorView& weights,
                                const TensorView& bias, const TensorView& y, Precision precision) {
  const TensorView result = in_f32(stream, kResult, y);
  cpu_kernels().dense_forward(stream, filled(stream, kX, x), weights, bias, result, Activation::kNone, precision);
  if (result.data != y.data) convert(stream, result, y);
}

void TwinKernels::dense_data_gradient(Stream& stream, const TensorView& dy, const TensorView& weights,
                                      const TensorView& dx, Precision precision) {
  const TensorView result = in_f32(stream, kResult, dx);
  cpu_kernels().dense_backward_data(stream, filled(stream, kDy, dy), weights, result, precision);
  if (result.data != dx.data) convert(stream, result, dx);
}

void TwinKernels::dense_weights_gradient(Stream& stream, const TensorView& x, const TensorView& dy,
                                         const TensorView& dweights, Precision precision) {
  cpu_kernels().dense_backward_weights(stream, filled(stream, kX, x), filled(stream, kDy, dy), dweights, {},
                                       precision);
}

void TwinKernels::batched_product(Stream& stream, const Matrices& a, const Matrices& b, float alpha,
                                  const Matrices& result, Precision precision) {
  const auto with = [](Matrices matrices, const TensorView& tensor) {
    matrices.tensor = tensor;
    return matrices;
  };
  const TensorView to = in_f32(stream, kResult, result.tensor);
  cpu_kernels().batched_matmul(stream, with(a, filled(stream, kX, a.tensor)),
                               with(b, filled(stream, kDy, b.tensor)), alpha, with(result, to), precision);
  if (to.data != result.tensor.data) convert(stream, to, result.tensor);
}

void TwinKernels::conv_product(Stream& stream, const TensorView& x, const TensorView& weights,
                               const TensorView& bias, const TensorView& y, const ConvOptions& options) {
  const TensorView result = in_f32(stream, kResult, y);
  cpu_kernels().conv_forward(stream, filled(stream, kX, x), weights, bias, result, options, Activation::kNone);
  if (result.data != y.data) convert(stream, result, y);
}

void TwinKernels::conv_data_gradient(Stream& stream, const TensorView& dy, const TensorView& weights,
                                     const TensorView& dx, const ConvOptions& options) {
  const TensorView result = in_f32(stream, kResult, dx);
  cpu_kernels().conv_backward_data(stream, filled(stream, kDy, dy), weights, result, options);
  if (result.data != dx.data) convert(stream, result, dx);
}

void TwinKernels::conv_weights_gradient(Stream& stream, const TensorView& x, const TensorView& dy,
                                        const TensorView& dweights, const ConvOptions& options) {
  cpu_kernels().conv_backward_weights(stream, filled(stream, kX, x), filled(stream, kDy, dy), dweights, {},
                                      options);
}

void TwinKernels::muon(Stream& stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
                       const StepScalars* scalars) {
  cpu_kernels().muon(stream, matrices, options, scalars);
}

}  // namespace headrace::test
