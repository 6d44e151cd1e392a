#include "headrace/tests/support/twin_kernels.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "headrace/devices/cuda/math/batch_norm_work.h"
#include "headrace/devices/cuda/math/bias_epilogue_work.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/dropout_work.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/global_average_work.h"
#include "headrace/devices/cuda/math/loss_work.h"
#include "headrace/devices/cuda/math/optimizer_work.h"
#include "headrace/devices/cuda/math/pooled_norm_work.h"
#include "headrace/devices/cuda/math/pooling_work.h"
#include "headrace/devices/cuda/math/shift_images_work.h"
#include "headrace/devices/kernel_checks.h"
#include "headrace/tests/support/host_launcher.h"

namespace headrace::test {
namespace {

constexpr auto kHalf = check::Half::kAccepted;
constexpr int kX = 0, kDy = 1, kResult = 2;  // slots of temporaries

// As NVIDIA's libraries do (CudnnConvolution, CublasLtDense).
constexpr bool fuses(Activation activation) {
  return activation == Activation::kNone || activation == Activation::kRelu;
}

template <typename Work>
void own(Stream& stream, Work work) {
  stream.call([work] {
    const HostLauncher launch;
    work(launch);
  });
}

void bias_activation(Stream& stream, const TensorView& y, const TensorView& bias, Activation activation) {
  own(stream, [=](const HostLauncher& launch) { cuda::submit_bias_activation(launch, y, bias, activation); });
}

// The same with scratch, 0xFF at first: what is read before it is written shows as NaN.
template <typename Work>
void own(Stream& stream, std::size_t scratch_bytes, Work work) {
  stream.call([work, scratch_bytes] {
    const HostLauncher launch;
    std::vector<std::max_align_t> scratch(scratch_bytes / sizeof(std::max_align_t) + 1);
    std::memset(scratch.data(), 0xFF, scratch_bytes);
    work(launch, scratch.data());
  });
}

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
  if (values.data != view.data) products().convert(stream, view, values);
  return values;
}

void TwinKernels::convert(Stream& stream, const TensorView& from, const TensorView& to) {
  check::convert("convert", from, to);
  own(stream, [=](const HostLauncher& launch) { cuda::submit_convert(launch, from, to); });
}

void TwinKernels::dense_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                                const TensorView& bias, const TensorView& y, Activation activation,
                                Precision precision) {
  check::dense("dense_forward", x, weights, bias, y, kHalf, check::half_weights(precision));
  const TensorView result = in_f32(stream, kResult, y);
  const bool fused = fuses(activation);
  products().dense_forward(stream, filled(stream, kX, x), weights, fused ? bias : TensorView{}, result,
                           fused ? activation : Activation::kNone, precision);
  if (result.data != y.data) convert(stream, result, y);
  if (!fused) bias_activation(stream, y, bias, activation);
}

void TwinKernels::dense_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                                      const TensorView& dx, Precision precision) {
  check::dense("dense_backward_data", dx, weights, {}, dy, kHalf, check::half_weights(precision));
  const TensorView result = in_f32(stream, kResult, dx);
  products().dense_backward_data(stream, filled(stream, kDy, dy), weights, result, precision);
  if (result.data != dx.data) convert(stream, result, dx);
}

void TwinKernels::dense_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                         const TensorView& dweights, const TensorView& dbias,
                                         Precision precision) {
  check::dense("dense_backward_weights", x, dweights, dbias, dy, kHalf);
  products().dense_backward_weights(stream, filled(stream, kX, x), filled(stream, kDy, dy), dweights, {},
                                    precision);
  add_bias_gradient(stream, dy, dbias);
}

void TwinKernels::conv_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                               const TensorView& bias, const TensorView& y, const ConvOptions& options,
                               Activation activation) {
  check::convolution("conv_forward", x, weights, bias, y, options, kHalf, check::half_weights(options.precision));
  const TensorView result = in_f32(stream, kResult, y);
  const bool fused = fuses(activation);
  products().conv_forward(stream, filled(stream, kX, x), weights, fused ? bias : TensorView{}, result, options,
                          fused ? activation : Activation::kNone);
  if (result.data != y.data) convert(stream, result, y);
  if (!fused) bias_activation(stream, y, bias, activation);
}

void TwinKernels::conv_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                                     const TensorView& dx, const ConvOptions& options) {
  check::convolution("conv_backward_data", dx, weights, {}, dy, options, kHalf,
                     check::half_weights(options.precision));
  const TensorView result = in_f32(stream, kResult, dx);
  products().conv_backward_data(stream, filled(stream, kDy, dy), weights, result, options);
  if (result.data != dx.data) convert(stream, result, dx);
}

void TwinKernels::conv_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                        const TensorView& dweights, const TensorView& dbias,
                                        const ConvOptions& options) {
  if (!dweights.defined()) return add_bias_gradient(stream, dy, dbias);
  check::convolution("conv_backward_weights", x, dweights, dbias, dy, options, kHalf);
  products().conv_backward_weights(stream, filled(stream, kX, x), filled(stream, kDy, dy), dweights, {}, options);
  add_bias_gradient(stream, dy, dbias);
}

void TwinKernels::add_bias_gradient(Stream& stream, const TensorView& dy, const TensorView& dbias) {
  if (!dbias.defined()) return;
  own(stream, cuda::reduction_scratch_bytes(dy),
      [=](const HostLauncher& launch, void* scratch) { cuda::submit_column_sums(launch, dy, dbias, scratch); });
}

void TwinKernels::activation_forward(Stream& stream, Activation activation, const TensorView& x,
                                     const TensorView& y) {
  for (const TensorView& view : {x, y}) check::same("activation_forward", view, x, kHalf);
  own(stream, [=](const HostLauncher& launch) { cuda::submit_activation_forward(launch, activation, x, y); });
}

void TwinKernels::activation_backward(Stream& stream, Activation activation, const TensorView& x,
                                      const TensorView& dy, const TensorView& dx) {
  for (const TensorView& view : {x, dy, dx}) check::same("activation_backward", view, x, kHalf);
  own(stream,
      [=](const HostLauncher& launch) { cuda::submit_activation_backward(launch, activation, x, dy, dx); });
}

void TwinKernels::add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) {
  for (const TensorView& view : {a, b, sum}) check::same("add", view, a, kHalf);
  own(stream, [=](const HostLauncher& launch) { cuda::submit_add(launch, a, b, sum); });
}

void TwinKernels::accumulate(Stream& stream, const TensorView& x, const TensorView& into) {
  for (const TensorView& view : {x, into}) check::same("accumulate", view, x, kHalf);
  own(stream, [=](const HostLauncher& launch) { cuda::submit_add(launch, into, x, into); });
}

void TwinKernels::scale_shift(Stream& stream, const TensorView& x, const TensorView& scale,
                              const TensorView& shift, const TensorView& y) {
  check::scale_shift("scale_shift", x, scale, shift, y, kHalf);
  own(stream, [=](const HostLauncher& launch) { cuda::submit_scale_shift(launch, x, scale, shift, y); });
}

void TwinKernels::dropout(Stream& stream, const TensorView& x, float rate, std::uint64_t seed, int layer,
                          const StepScalars* scalars, const TensorView& y) {
  check::dropout("dropout", rate, layer);
  for (const TensorView& view : {x, y}) check::same("dropout", view, x, kHalf);
  own(stream, [=](const HostLauncher& launch) { cuda::submit_dropout(launch, x, rate, seed, layer, scalars, y); });
}

void TwinKernels::shift_images(Stream& stream, const TensorView& x, const ImageShift& shift, const TensorView& y) {
  check::shift("shift_images", x, shift, y, kHalf);
  own(stream, [=](const HostLauncher& launch) { cuda::submit_shift_images(launch, x, shift, y); });
}

void TwinKernels::max_pool_forward(Stream& stream, const TensorView& x, const TensorView& y,
                                   const TensorView& argmax, const PoolOptions& options) {
  check::max_pool("max_pool_forward", x, y, argmax, options, kHalf);
  own(stream, [=](const HostLauncher& launch) { cuda::submit_max_pool_forward(launch, x, y, argmax, options); });
}

void TwinKernels::max_pool_backward(Stream& stream, const TensorView& dy, const TensorView& argmax,
                                    const TensorView& dx, const PoolOptions& options) {
  check::max_pool("max_pool_backward", dx, dy, argmax, options, kHalf);
  own(stream,
      [=](const HostLauncher& launch) { cuda::submit_max_pool_backward(launch, dy, argmax, dx, options); });
}

void TwinKernels::global_average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y) {
  check::global_pool("global_average_pool_forward", x, y, kHalf);
  own(stream, [=](const HostLauncher& launch) { cuda::submit_global_average_forward(launch, x, y); });
}

void TwinKernels::global_average_pool_backward(Stream& stream, const TensorView& dy, const TensorView& dx) {
  check::global_pool("global_average_pool_backward", dx, dy, kHalf);
  own(stream, [=](const HostLauncher& launch) { cuda::submit_global_average_backward(launch, dy, dx); });
}

void TwinKernels::batch_norm_train(Stream& stream, const TensorView& x, const BatchNorm& norm,
                                   const StepScalars* scalars, const TensorView& y) {
  check::batch_norm_training("batch_norm_train", x, norm, kHalf);
  check::same("batch_norm_train", y, x, kHalf);
  own(stream, cuda::batch_norm_scratch_bytes(x), [=](const HostLauncher& launch, void* scratch) {
    cuda::submit_batch_norm_train(launch, x, norm, scalars, y, scratch);
  });
}

void TwinKernels::batch_norm_infer(Stream& stream, const TensorView& x, const BatchNorm& norm,
                                   const TensorView& y) {
  check::batch_norm("batch_norm_infer", x, norm, kHalf);
  check::same("batch_norm_infer", y, x, kHalf);
  own(stream, [=](const HostLauncher& launch) { cuda::submit_batch_norm_infer(launch, x, norm, y); });
}

void TwinKernels::batch_norm_backward(Stream& stream, const TensorView& x, const TensorView& dy,
                                      const BatchNorm& norm, const StepScalars* scalars, const TensorView& dgamma,
                                      const TensorView& dbeta, const TensorView& dx) {
  check::batch_norm_training("batch_norm_backward", x, norm, kHalf);
  for (const TensorView& view : {dy, dx}) check::same("batch_norm_backward", view, x, kHalf);
  check::norm_gradients("batch_norm_backward", dgamma, dbeta, x);
  own(stream, cuda::batch_norm_scratch_bytes(x), [=](const HostLauncher& launch, void* scratch) {
    cuda::submit_batch_norm_backward(launch, x, dy, norm, scalars, dgamma, dbeta, dx, scratch);
  });
}

void TwinKernels::max_pool_batch_norm_train(Stream& stream, const TensorView& x, const MaxPool& pool,
                                            const TensorView& pooled, const BatchNorm& norm,
                                            const StepScalars* scalars, const TensorView& y) {
  check::max_pool_batch_norm("max_pool_batch_norm_train", x, pool, pooled, norm, y, kHalf);
  own(stream, cuda::batch_norm_scratch_bytes(pooled), [=](const HostLauncher& launch, void* scratch) {
    cuda::submit_max_pool_batch_norm_train(launch, x, pool, pooled, norm, scalars, y, scratch);
  });
}

void TwinKernels::max_pool_batch_norm_backward(Stream& stream, const TensorView& pooled, const TensorView& dy,
                                               const BatchNorm& norm, const StepScalars* scalars,
                                               const TensorView& dgamma, const TensorView& dbeta,
                                               const MaxPool& pool, const TensorView& dx) {
  check::max_pool_batch_norm("max_pool_batch_norm_backward", dx, pool, pooled, norm, dy, kHalf);
  check::norm_gradients("max_pool_batch_norm_backward", dgamma, dbeta, pooled);
  own(stream, cuda::batch_norm_scratch_bytes(pooled), [=](const HostLauncher& launch, void* scratch) {
    cuda::submit_max_pool_batch_norm_backward(launch, pooled, dy, norm, scalars, dgamma, dbeta, pool, dx, scratch);
  });
}

void TwinKernels::softmax_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& labels,
                                        float label_smoothing, const StepScalars* scalars,
                                        const TensorView& dlogits, MetricSums* sums) {
  check::loss("softmax_cross_entropy", logits, labels);
  if (dlogits.defined()) check::same("softmax_cross_entropy", dlogits, logits);
  own(stream, cuda::loss_scratch_bytes(logits), [=](const HostLauncher& launch, void* scratch) {
    cuda::submit_cross_entropy(launch, logits, labels, label_smoothing, scalars, dlogits, sums, scratch);
  });
}

void TwinKernels::softmax(Stream& stream, const TensorView& logits, const TensorView& probabilities) {
  for (const TensorView& view : {logits, probabilities}) check::same("softmax", view, logits);
  own(stream, [=](const HostLauncher& launch) { cuda::submit_softmax(launch, logits, probabilities); });
}

void TwinKernels::adam(Stream& stream, const Parameters& parameters, const TensorView& gradients,
                       const TensorView& first_moment, const TensorView& second_moment,
                       std::span<const UpdateRange<AdamOptions>> ranges, const StepScalars* scalars) {
  check::adam(parameters, gradients, first_moment, second_moment, ranges);
  own(stream, [=, owned = std::vector(ranges.begin(), ranges.end())](const HostLauncher& launch) {
    cuda::submit_adam(launch, parameters, gradients, first_moment, second_moment, std::span(owned), scalars);
  });
}

void TwinKernels::sgd(Stream& stream, const Parameters& parameters, const TensorView& gradients,
                      const TensorView& velocity, std::span<const UpdateRange<SgdOptions>> ranges,
                      const StepScalars* scalars) {
  check::sgd(parameters, gradients, velocity, ranges);
  own(stream, [=, owned = std::vector(ranges.begin(), ranges.end())](const HostLauncher& launch) {
    cuda::submit_sgd(launch, parameters, gradients, velocity, std::span(owned), scalars);
  });
}

void TwinKernels::muon(Stream& stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
                       const StepScalars* scalars) {
  products().muon(stream, matrices, options, scalars);
}

}  // namespace headrace::test
