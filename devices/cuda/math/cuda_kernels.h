// A GPU's table of mathematics: checks shapes, makes the device current, submits. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "headrace/devices/cuda/math/cublaslt_dense.h"
#include "headrace/devices/cuda/math/cuda_muon.h"
#include "headrace/devices/cuda/math/cudnn_convolution.h"
#include "headrace/devices/cuda/math/stream_scratch.h"
#include "headrace/devices/kernels.h"

namespace headrace {

// Products are cuDNN's and cuBLASLt's, everything else is our own. Activations may be f32 or bf16. Work captured
// on one stream must not be launched on another while that one has work: scratch memory belongs to the stream.
class CudaKernels final : public Kernels {
 public:
  // Of GPU `ordinal`, called `device_name` in errors.
  CudaKernels(int ordinal, const std::string& device_name);

  // Every GPU that this is built for has bf16 tensor cores.
  bool prefers_bf16() const noexcept override { return true; }
  DType activation_type(Precision precision) const noexcept override {
    return precision == Precision::kBF16 ? DType::kBF16 : DType::kF32;
  }
  DType product_weights_type(Precision precision) const noexcept override { return activation_type(precision); }

  void convert(Stream& stream, const TensorView& from, const TensorView& to) override;

  void dense_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                     const TensorView& y, Activation activation, Precision precision) override;
  void dense_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                           Precision precision) override;
  void dense_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                              const TensorView& dweights, const TensorView& dbias, Precision precision) override;

  void conv_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                    const TensorView& y, const ConvOptions& options, Activation activation) override;
  void conv_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                          const ConvOptions& options) override;
  void conv_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy, const TensorView& dweights,
                             const TensorView& dbias, const ConvOptions& options) override;

  void activation_forward(Stream& stream, Activation activation, const TensorView& x,
                          const TensorView& y) override;
  void activation_backward(Stream& stream, Activation activation, const TensorView& x, const TensorView& dy,
                           const TensorView& dx) override;
  void add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) override;
  void accumulate(Stream& stream, const TensorView& x, const TensorView& into) override;
  void scale_shift(Stream& stream, const TensorView& x, const TensorView& scale, const TensorView& shift,
                   const TensorView& y) override;
  void dropout(Stream& stream, const TensorView& x, float rate, std::uint64_t seed, int layer,
               const StepScalars* scalars, const TensorView& y) override;

  void shift_images(Stream& stream, const TensorView& x, const ImageShift& shift, const TensorView& y) override;

  void max_pool_forward(Stream& stream, const TensorView& x, const TensorView& y, const TensorView& argmax,
                        const PoolOptions& options) override;
  void max_pool_backward(Stream& stream, const TensorView& dy, const TensorView& argmax, const TensorView& dx,
                         const PoolOptions& options) override;
  void global_average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y) override;
  void global_average_pool_backward(Stream& stream, const TensorView& dy, const TensorView& dx) override;

  void batch_norm_train(Stream& stream, const TensorView& x, const BatchNorm& norm, const StepScalars* scalars,
                        const TensorView& y) override;
  void batch_norm_infer(Stream& stream, const TensorView& x, const BatchNorm& norm, const TensorView& y) override;
  void batch_norm_backward(Stream& stream, const TensorView& x, const TensorView& dy, const BatchNorm& norm,
                           const StepScalars* scalars, const TensorView& dgamma, const TensorView& dbeta,
                           const TensorView& dx) override;
  void max_pool_batch_norm_train(Stream& stream, const TensorView& x, const MaxPool& pool,
                                 const TensorView& pooled, const BatchNorm& norm, const StepScalars* scalars,
                                 const TensorView& y) override;
  void max_pool_batch_norm_backward(Stream& stream, const TensorView& pooled, const TensorView& dy,
                                    const BatchNorm& norm, const StepScalars* scalars, const TensorView& dgamma,
                                    const TensorView& dbeta, const MaxPool& pool, const TensorView& dx) override;

  void softmax_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& labels,
                             float label_smoothing, const StepScalars* scalars, const TensorView& dlogits,
                             MetricSums* sums) override;
  void softmax(Stream& stream, const TensorView& logits, const TensorView& probabilities) override;

  void adam(Stream& stream, const Parameters& parameters, const TensorView& gradients,
            const TensorView& first_moment, const TensorView& second_moment,
            std::span<const UpdateRange<AdamOptions>> ranges, const StepScalars* scalars) override;
  void sgd(Stream& stream, const Parameters& parameters, const TensorView& gradients, const TensorView& velocity,
           std::span<const UpdateRange<SgdOptions>> ranges, const StepScalars* scalars) override;
  void muon(Stream& stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
            const StepScalars* scalars) override;

 private:
  template <typename Work>
  void submit(Stream& stream, const char* kernel, const Work& work);
  void need(cudaError_t status, const char* kernel) const;
  void add_bias_gradient(cudaStream_t stream, const char* kernel, const TensorView& dy, const TensorView& dbias);

  int ordinal_;
  std::string device_;
  CudnnConvolution convolution_;
  CublasLtDense dense_;
  CudaMuon muon_;
  cuda::StreamScratch scratch_;
};

}  // namespace headrace
