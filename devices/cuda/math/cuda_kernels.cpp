#include "headrace/devices/cuda/math/cuda_kernels.h"

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/math/narrow_convolution.h"
#include "headrace/devices/cuda/math/product_calls.h"

namespace headrace {

CudaKernels::CudaKernels(int ordinal, const std::string& device_name, cuda::PlanStore& store)
    : GpuKernels(ordinal, device_name),
      convolution_(ordinal, device_name, store),
      dense_(ordinal, device_name),
      muon_(ordinal, device_name),
      device_(device_name),
      scratch_(device_name) {}

void CudaKernels::dense_product(Stream& stream, const TensorView& x, const TensorView& weights,
                                const TensorView& bias, const TensorView& y, Precision precision) {
  if (const auto on = launches_.enter(stream)) dense_.forward(*on, x, weights, bias, y, precision);
}

void CudaKernels::dense_data_gradient(Stream& stream, const TensorView& dy, const TensorView& weights,
                                      const TensorView& dx, Precision precision) {
  if (const auto on = launches_.enter(stream)) dense_.backward_data(*on, dy, weights, dx, precision);
}

void CudaKernels::dense_weights_gradient(Stream& stream, const TensorView& x, const TensorView& dy,
                                         const TensorView& dweights, Precision precision) {
  if (const auto on = launches_.enter(stream)) dense_.backward_weights(*on, x, dy, dweights, precision);
}

void CudaKernels::batched_product(Stream& stream, const Matrices& a, const Matrices& b, float alpha,
                                  const Matrices& result, Precision precision) {
  if (const auto on = launches_.enter(stream)) dense_.batched(*on, a, b, alpha, result, precision);
}

void CudaKernels::conv_product(Stream& stream, const TensorView& x, const TensorView& weights,
                               const TensorView& bias, const TensorView& y, const ConvOptions& options) {
  const auto on = launches_.enter(stream);
  if (!on) return;
  if (!bias.defined() && cuda::fits_narrow_kernels(x, weights, y, options)) {
    CUDA_CHECK(cuda::narrow_forward(x, weights, y, *on), device_);
  } else {
    convolution_.forward(*on, x, weights, bias, y, options);
  }
}

void CudaKernels::conv_data_gradient(Stream& stream, const TensorView& dy, const TensorView& weights,
                                     const TensorView& dx, const ConvOptions& options) {
  const auto on = launches_.enter(stream);
  if (!on) return;
  if (cuda::fits_narrow_kernels(dx, weights, dy, options)) {
    CUDA_CHECK(cuda::narrow_input_gradient(dy, weights, dx, *on), device_);
  } else {
    convolution_.backward_data(*on, dy, weights, dx, options);
  }
}

void CudaKernels::conv_weights_gradient(Stream& stream, const TensorView& x, const TensorView& dy,
                                        const TensorView& dweights, const ConvOptions& options) {
  const auto on = launches_.enter(stream);
  if (!on) return;
  if (cuda::fits_narrow_weight_gradient(x, dy, dweights, options)) {
    void* scratch = scratch_.reserve(*on, cuda::narrow_scratch_bytes());
    CUDA_CHECK(cuda::narrow_weight_gradient(x, dy, dweights, scratch, *on), device_);
  } else {
    convolution_.backward_weights(*on, x, dy, dweights, options);
  }
}

void CudaKernels::muon(Stream& stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
                       const StepScalars* scalars) {
  check::muon(matrices, options);
  if (const auto on = launches_.enter(stream)) muon_.update(*on, matrices, options, scalars);
}

namespace cuda {
template void GpuKernels<CudaLaunches>::dense_forward(Stream&, const TensorView&, const TensorView&,
                                                      const TensorView&, const TensorView&, Activation, Precision);
template void GpuKernels<CudaLaunches>::dense_backward_data(Stream&, const TensorView&, const TensorView&,
                                                            const TensorView&, Precision);
template void GpuKernels<CudaLaunches>::dense_backward_weights(Stream&, const TensorView&, const TensorView&,
                                                               const TensorView&, const TensorView&, Precision);
template void GpuKernels<CudaLaunches>::batched_matmul(Stream&, const Matrices&, const Matrices&, float,
                                                       const Matrices&, Precision);
template void GpuKernels<CudaLaunches>::conv_forward(Stream&, const TensorView&, const TensorView&,
                                                     const TensorView&, const TensorView&, const ConvOptions&,
                                                     Activation);
template void GpuKernels<CudaLaunches>::conv_backward_data(Stream&, const TensorView&, const TensorView&,
                                                           const TensorView&, const ConvOptions&);
template void GpuKernels<CudaLaunches>::conv_backward_weights(Stream&, const TensorView&, const TensorView&,
                                                              const TensorView&, const TensorView&,
                                                              const ConvOptions&);
template void GpuKernels<CudaLaunches>::add_bias(Stream&, const TensorView&, const TensorView&, Activation);
}  // namespace cuda

}  // namespace headrace
