#include "headrace/devices/cuda/math/cuda_kernels.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/math/batch_norm.h"
#include "headrace/devices/cuda/math/batch_norm_work.h"
#include "headrace/devices/cuda/math/bias_epilogue.h"
#include "headrace/devices/cuda/math/column_sums.h"
#include "headrace/devices/cuda/math/convert.h"
#include "headrace/devices/cuda/math/dropout.h"
#include "headrace/devices/cuda/math/elementwise.h"
#include "headrace/devices/cuda/math/loss.h"
#include "headrace/devices/cuda/math/loss_work.h"
#include "headrace/devices/cuda/math/optimizers.h"
#include "headrace/devices/cuda/math/pooled_norm.h"
#include "headrace/devices/cuda/math/pooling.h"
#include "headrace/devices/cuda/math/shift_images.h"
#include "headrace/devices/device.h"
#include "headrace/devices/kernel_checks.h"

namespace headrace {
namespace {

constexpr auto kHalf = check::Half::kAccepted;

// A stream of the GPU that these kernels are of. The type may come from another module, so its kind is asked, not
// its type information.
CudaStream& cuda_stream(Stream& stream, int ordinal) {
  const DeviceInfo& info = stream.device().info();
  if (info.kind != DeviceKind::kCuda || info.ordinal != ordinal) {
    throw DeviceError(ErrorCode::kInvalidArgument, "a GPU's mathematics was submitted to another device's stream",
                      info.name, "use the kernels() of the device that made the stream");
  }
  return static_cast<CudaStream&>(stream);
}

}  // namespace

CudaKernels::CudaKernels(int ordinal, const std::string& device_name)
    : ordinal_(ordinal),
      device_(device_name),
      convolution_(ordinal, device_name),
      dense_(ordinal, device_name),
      muon_(ordinal, device_name),
      scratch_(device_name) {}

// work(handle) with the device current; nothing where the stream has failed. A cudaError_t that it returns is
// checked.
template <typename Work>
void CudaKernels::submit(Stream& stream, const char* kernel, const Work& work) {
  const CudaStream& mine = cuda_stream(stream, ordinal_);
  if (mine.skips()) return;
  CUDA_CHECK(cudaSetDevice(ordinal_), device_);
  if constexpr (std::is_void_v<decltype(work(mine.handle()))>) {
    work(mine.handle());
  } else {
    need(work(mine.handle()), kernel);
  }
}

void CudaKernels::need(cudaError_t status, const char* kernel) const {
  if (status != cudaSuccess) detail::throw_cuda_error(status, kernel, device_);
}

void CudaKernels::convert(Stream& stream, const TensorView& from, const TensorView& to) {
  check::convert("convert", from, to);
  submit(stream, "convert", [&](cudaStream_t on) { return cuda::convert(from, to, on); });
}

void CudaKernels::dense_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                                const TensorView& bias, const TensorView& y, Activation activation,
                                Precision precision) {
  check::dense("dense_forward", x, weights, bias, y, kHalf, check::half_weights(precision));
  const bool fused = CublasLtDense::fuses(activation);
  submit(stream, "dense_forward", [&](cudaStream_t on) {
    if (fused) return dense_.forward(on, x, weights, bias, y, activation, precision);
    dense_.forward(on, x, weights, {}, y, Activation::kNone, precision);
    need(cuda::bias_activation(y, bias, activation, on), "dense_forward");
  });
}

void CudaKernels::dense_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                                      const TensorView& dx, Precision precision) {
  check::dense("dense_backward_data", dx, weights, {}, dy, kHalf, check::half_weights(precision));
  submit(stream, "dense_backward_data",
         [&](cudaStream_t on) { dense_.backward_data(on, dy, weights, dx, precision); });
}

void CudaKernels::dense_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                         const TensorView& dweights, const TensorView& dbias,
                                         Precision precision) {
  check::dense("dense_backward_weights", x, dweights, dbias, dy, kHalf);
  submit(stream, "dense_backward_weights", [&](cudaStream_t on) {
    dense_.backward_weights(on, x, dy, dweights, precision);
    add_bias_gradient(on, "dense_backward_weights", dy, dbias);
  });
}

void CudaKernels::conv_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                               const TensorView& bias, const TensorView& y, const ConvOptions& options,
                               Activation activation) {
  check::convolution("conv_forward", x, weights, bias, y, options, kHalf, check::half_weights(options.precision));
  const bool fused = CudnnConvolution::fuses(activation);
  submit(stream, "conv_forward", [&](cudaStream_t on) {
    if (fused) return convolution_.forward(on, x, weights, bias, y, options, activation);
    convolution_.forward(on, x, weights, {}, y, options, Activation::kNone);
    need(cuda::bias_activation(y, bias, activation, on), "conv_forward");
  });
}

void CudaKernels::conv_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                                     const TensorView& dx, const ConvOptions& options) {
  check::convolution("conv_backward_data", dx, weights, {}, dy, options, kHalf,
                     check::half_weights(options.precision));
  submit(stream, "conv_backward_data",
         [&](cudaStream_t on) { convolution_.backward_data(on, dy, weights, dx, options); });
}

void CudaKernels::conv_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                        const TensorView& dweights, const TensorView& dbias,
                                        const ConvOptions& options) {
  if (dweights.defined()) check::convolution("conv_backward_weights", x, dweights, dbias, dy, options, kHalf);
  submit(stream, "conv_backward_weights", [&](cudaStream_t on) {
    if (dweights.defined()) convolution_.backward_weights(on, x, dy, dweights, options);
    add_bias_gradient(on, "conv_backward_weights", dy, dbias);
  });
}

void CudaKernels::add_bias_gradient(cudaStream_t stream, const char* kernel, const TensorView& dy,
                                    const TensorView& dbias) {
  if (!dbias.defined()) return;
  need(cuda::column_sums(dy, dbias, scratch_.reserve(stream, cuda::reduction_scratch_bytes(dy)), stream), kernel);
}

void CudaKernels::activation_forward(Stream& stream, Activation activation, const TensorView& x,
                                     const TensorView& y) {
  for (const TensorView& view : {x, y}) check::same("activation_forward", view, x, kHalf);
  submit(stream, "activation_forward",
         [&](cudaStream_t on) { return cuda::activation_forward(activation, x, y, on); });
}

void CudaKernels::activation_backward(Stream& stream, Activation activation, const TensorView& x,
                                      const TensorView& dy, const TensorView& dx) {
  for (const TensorView& view : {x, dy, dx}) check::same("activation_backward", view, x, kHalf);
  submit(stream, "activation_backward",
         [&](cudaStream_t on) { return cuda::activation_backward(activation, x, dy, dx, on); });
}

void CudaKernels::add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) {
  for (const TensorView& view : {a, b, sum}) check::same("add", view, a, kHalf);
  submit(stream, "add", [&](cudaStream_t on) { return cuda::add(a, b, sum, on); });
}

void CudaKernels::accumulate(Stream& stream, const TensorView& x, const TensorView& into) {
  for (const TensorView& view : {x, into}) check::same("accumulate", view, x, kHalf);
  submit(stream, "accumulate", [&](cudaStream_t on) { return cuda::add(into, x, into, on); });
}

void CudaKernels::scale_shift(Stream& stream, const TensorView& x, const TensorView& scale,
                              const TensorView& shift, const TensorView& y) {
  check::scale_shift("scale_shift", x, scale, shift, y, kHalf);
  submit(stream, "scale_shift", [&](cudaStream_t on) { return cuda::scale_shift(x, scale, shift, y, on); });
}

void CudaKernels::dropout(Stream& stream, const TensorView& x, float rate, std::uint64_t seed, int layer,
                          const StepScalars* scalars, const TensorView& y) {
  check::dropout("dropout", rate, layer);
  for (const TensorView& view : {x, y}) check::same("dropout", view, x, kHalf);
  submit(stream, "dropout", [&](cudaStream_t on) { return cuda::dropout(x, rate, seed, layer, scalars, y, on); });
}

void CudaKernels::shift_images(Stream& stream, const TensorView& x, const ImageShift& shift, const TensorView& y) {
  check::shift("shift_images", x, shift, y, kHalf);
  submit(stream, "shift_images", [&](cudaStream_t on) { return cuda::shift_images(x, shift, y, on); });
}

void CudaKernels::max_pool_forward(Stream& stream, const TensorView& x, const TensorView& y,
                                   const TensorView& argmax, const PoolOptions& options) {
  check::max_pool("max_pool_forward", x, y, argmax, options, kHalf);
  submit(stream, "max_pool_forward",
         [&](cudaStream_t on) { return cuda::max_pool_forward(x, y, argmax, options, on); });
}

void CudaKernels::max_pool_backward(Stream& stream, const TensorView& dy, const TensorView& argmax,
                                    const TensorView& dx, const PoolOptions& options) {
  check::max_pool("max_pool_backward", dx, dy, argmax, options, kHalf);
  submit(stream, "max_pool_backward",
         [&](cudaStream_t on) { return cuda::max_pool_backward(dy, argmax, dx, options, on); });
}

void CudaKernels::global_average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y) {
  check::global_pool("global_average_pool_forward", x, y, kHalf);
  submit(stream, "global_average_pool_forward",
         [&](cudaStream_t on) { return cuda::global_average_forward(x, y, on); });
}

void CudaKernels::global_average_pool_backward(Stream& stream, const TensorView& dy, const TensorView& dx) {
  check::global_pool("global_average_pool_backward", dx, dy, kHalf);
  submit(stream, "global_average_pool_backward",
         [&](cudaStream_t on) { return cuda::global_average_backward(dy, dx, on); });
}

void CudaKernels::batch_norm_train(Stream& stream, const TensorView& x, const BatchNorm& norm,
                                   const StepScalars* scalars, const TensorView& y) {
  check::batch_norm_training("batch_norm_train", x, norm, kHalf);
  check::same("batch_norm_train", y, x, kHalf);
  submit(stream, "batch_norm_train", [&](cudaStream_t on) {
    void* scratch = scratch_.reserve(on, cuda::batch_norm_scratch_bytes(x));
    return cuda::batch_norm_train(x, norm, scalars, y, scratch, on);
  });
}

void CudaKernels::batch_norm_infer(Stream& stream, const TensorView& x, const BatchNorm& norm,
                                   const TensorView& y) {
  check::batch_norm("batch_norm_infer", x, norm, kHalf);
  check::same("batch_norm_infer", y, x, kHalf);
  submit(stream, "batch_norm_infer", [&](cudaStream_t on) { return cuda::batch_norm_infer(x, norm, y, on); });
}

void CudaKernels::batch_norm_backward(Stream& stream, const TensorView& x, const TensorView& dy,
                                      const BatchNorm& norm, const StepScalars* scalars, const TensorView& dgamma,
                                      const TensorView& dbeta, const TensorView& dx) {
  check::batch_norm_training("batch_norm_backward", x, norm, kHalf);
  for (const TensorView& view : {dy, dx}) check::same("batch_norm_backward", view, x, kHalf);
  check::norm_gradients("batch_norm_backward", dgamma, dbeta, x);
  submit(stream, "batch_norm_backward", [&](cudaStream_t on) {
    void* scratch = scratch_.reserve(on, cuda::batch_norm_scratch_bytes(x));
    return cuda::batch_norm_backward(x, dy, norm, scalars, dgamma, dbeta, dx, scratch, on);
  });
}

void CudaKernels::max_pool_batch_norm_train(Stream& stream, const TensorView& x, const MaxPool& pool,
                                            const TensorView& pooled, const BatchNorm& norm,
                                            const StepScalars* scalars, const TensorView& y) {
  check::max_pool_batch_norm("max_pool_batch_norm_train", x, pool, pooled, norm, y, kHalf);
  submit(stream, "max_pool_batch_norm_train", [&](cudaStream_t on) {
    void* scratch = scratch_.reserve(on, cuda::batch_norm_scratch_bytes(pooled));
    return cuda::max_pool_batch_norm_train(x, pool, pooled, norm, scalars, y, scratch, on);
  });
}

void CudaKernels::max_pool_batch_norm_backward(Stream& stream, const TensorView& pooled, const TensorView& dy,
                                               const BatchNorm& norm, const StepScalars* scalars,
                                               const TensorView& dgamma, const TensorView& dbeta,
                                               const MaxPool& pool, const TensorView& dx) {
  check::max_pool_batch_norm("max_pool_batch_norm_backward", dx, pool, pooled, norm, dy, kHalf);
  check::norm_gradients("max_pool_batch_norm_backward", dgamma, dbeta, pooled);
  submit(stream, "max_pool_batch_norm_backward", [&](cudaStream_t on) {
    void* scratch = scratch_.reserve(on, cuda::batch_norm_scratch_bytes(pooled));
    return cuda::max_pool_batch_norm_backward(pooled, dy, norm, scalars, dgamma, dbeta, pool, dx, scratch, on);
  });
}

void CudaKernels::softmax_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& labels,
                                        float label_smoothing, const StepScalars* scalars,
                                        const TensorView& dlogits, MetricSums* sums) {
  check::loss("softmax_cross_entropy", logits, labels);
  if (dlogits.defined()) check::same("softmax_cross_entropy", dlogits, logits);
  submit(stream, "softmax_cross_entropy", [&](cudaStream_t on) {
    void* scratch = scratch_.reserve(on, cuda::loss_scratch_bytes(logits));
    return cuda::softmax_cross_entropy(logits, labels, label_smoothing, scalars, dlogits, sums, scratch, on);
  });
}

void CudaKernels::softmax(Stream& stream, const TensorView& logits, const TensorView& probabilities) {
  for (const TensorView& view : {logits, probabilities}) check::same("softmax", view, logits);
  submit(stream, "softmax", [&](cudaStream_t on) { return cuda::softmax(logits, probabilities, on); });
}

void CudaKernels::adam(Stream& stream, const Parameters& parameters, const TensorView& gradients,
                       const TensorView& first_moment, const TensorView& second_moment,
                       std::span<const UpdateRange<AdamOptions>> ranges, const StepScalars* scalars) {
  check::adam(parameters, gradients, first_moment, second_moment, ranges);
  submit(stream, "adam", [&](cudaStream_t on) {
    return cuda::adam(parameters, gradients, first_moment, second_moment, ranges, scalars, on);
  });
}

void CudaKernels::sgd(Stream& stream, const Parameters& parameters, const TensorView& gradients,
                      const TensorView& velocity, std::span<const UpdateRange<SgdOptions>> ranges,
                      const StepScalars* scalars) {
  check::sgd(parameters, gradients, velocity, ranges);
  submit(stream, "sgd",
         [&](cudaStream_t on) { return cuda::sgd(parameters, gradients, velocity, ranges, scalars, on); });
}

void CudaKernels::muon(Stream& stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
                       const StepScalars* scalars) {
  check::muon(matrices, options);
  submit(stream, "muon", [&](cudaStream_t on) { muon_.update(on, matrices, options, scalars); });
}

}  // namespace headrace
