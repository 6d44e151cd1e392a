// A GPU's table of mathematics except for matrix products: the checks, launches and scratch memory of each call.
// One definition serves a GPU (cuda_kernels.cpp) and its twin on the host (tests/support/twin_kernels.h). Private
// to the CUDA backend.
#pragma once

#include <span>
#include <utility>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/direct_convolution.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// Returns whether a library's product adds the bias; otherwise our own kernel does, with the activation, after the
// bare product. The libraries' activations are none of Kernels: their ReLU may turn NaN into 0, their GELU is the
// tanh approximation.
constexpr bool products_add_bias(Activation activation) noexcept {
  return activation == Activation::kNone || activation == Activation::kRelu;
}

// Launches has
//   submit(stream, kernel, work)                  work(launcher), in stream order
//   submit(stream, kernel, scratch_bytes, work)   work(launcher, scratch)
// with a launcher as in cuda_launcher.cuh; `kernel` appears in errors. Members are defined in *_calls.h and
// instantiated for the GPU in the .cu of their kernels. Activations may be f32 or bf16.
template <typename Launches>
class GpuKernels : public Kernels {
 public:
  // All supported GPUs have bf16 tensor cores.
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
  void batched_matmul(Stream& stream, const Matrices& a, const Matrices& b, float alpha, const Matrices& result,
                      Precision precision) override;
  void mask_scores(Stream& stream, const TensorView& scores, const TensorView& mask, bool causal) override;
  void conv_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                    const TensorView& y, const ConvOptions& options, Activation activation) override;
  void conv_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                          const ConvOptions& options) override;
  void conv_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy, const TensorView& dweights,
                             const TensorView& dbias, const ConvOptions& options) override;
  bool recomputes_activation(DType activations, const Shape& weights, const ConvOptions& options) const override {
    return computes_directly(activations, weights, options);
  }
  void conv_bias_backward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                          const TensorView& dy, const TensorView& dbias, const ConvOptions& options,
                          Activation activation) override;
  void depthwise_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                         const TensorView& y, const ConvOptions& options, Activation activation) override;
  void depthwise_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                               const TensorView& dx, const ConvOptions& options) override;
  void depthwise_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                  const TensorView& dweights, const TensorView& dbias,
                                  const ConvOptions& options) override;
  void add_bias(Stream& stream, const TensorView& bias, const TensorView& y, Activation activation) override;
  void activation_forward(Stream& stream, Activation activation, const TensorView& x,
                          const TensorView& y) override;
  void activation_backward(Stream& stream, Activation activation, const TensorView& x, const TensorView& dy,
                           const TensorView& dx) override;
  void add(Stream& stream, const TensorView& a, const TensorView& b, const TensorView& sum) override;
  void accumulate(Stream& stream, const TensorView& x, const TensorView& into) override;
  void sum_tree(Stream& stream, std::span<const TensorView> parts, const TensorView& sum) override;
  void scale(Stream& stream, const TensorView& x, const Factor& factor, const TensorView& y) override;
  void dropout(Stream& stream, const TensorView& x, float rate, std::uint64_t seed, int layer,
               const StepScalars* scalars, const TensorView& y) override;
  void copy_columns(Stream& stream, const TensorView& from, std::int64_t from_column, const TensorView& to,
                    std::int64_t to_column, std::int64_t columns) override;
  void shift_images(Stream& stream, const TensorView& x, const ImageShift& shift, const TensorView& y) override;
  void max_pool_forward(Stream& stream, const TensorView& x, const TensorView& y, const TensorView& argmax,
                        const PoolOptions& options) override;
  void max_pool_backward(Stream& stream, const TensorView& dy, const TensorView& argmax, const TensorView& dx,
                         const PoolOptions& options) override;
  void average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y,
                            const PoolOptions& options) override;
  void average_pool_backward(Stream& stream, const TensorView& dy, const TensorView& dx,
                             const PoolOptions& options) override;
  void global_average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y) override;
  void global_average_pool_backward(Stream& stream, const TensorView& dy, const TensorView& dx) override;
  void batch_norm_train(Stream& stream, const TensorView& x, const BatchNorm& norm, const StepScalars* scalars,
                        const TensorView& y) override;
  void batch_norm_infer(Stream& stream, const TensorView& x, const BatchNorm& norm, const TensorView& y) override;
  void batch_norm_backward(Stream& stream, const TensorView& x, const TensorView& dy, const BatchNorm& norm,
                           const StepScalars* scalars, const TensorView& dgamma, const TensorView& dbeta,
                           const TensorView& dx) override;
  void pack_statistics(Stream& stream, const TensorView& x, const BatchNorm& norm, const StepScalars* scalars,
                       const TensorView& row) override;
  void join_statistics(Stream& stream, const TensorView& statistics, int replica, const BatchNorm& norm,
                       const TensorView& variance, const TensorView& inverse_counts) override;
  void join_input_gradient(Stream& stream, const TensorView& x, const BatchNorm& norm, const TensorView& own,
                           const TensorView& joint, const TensorView& inverse_counts, const StepScalars* scalars,
                           const TensorView& dx) override;
  void max_pool_batch_norm_train(Stream& stream, const TensorView& x, const MaxPool& pool,
                                 const TensorView& pooled, const BatchNorm& norm, const StepScalars* scalars,
                                 const TensorView& y) override;
  void max_pool_batch_norm_backward(Stream& stream, const TensorView& pooled, const TensorView& dy,
                                    const BatchNorm& norm, const StepScalars* scalars, const TensorView& dgamma,
                                    const TensorView& dbeta, const MaxPool& pool, const TensorView& dx) override;
  void layer_norm_forward(Stream& stream, const TensorView& x, const LayerNorm& norm,
                          const TensorView& y) override;
  void layer_norm_backward(Stream& stream, const TensorView& x, const TensorView& dy, const LayerNorm& norm,
                           const TensorView& dgamma, const TensorView& dbeta, const TensorView& dx) override;
  void embed(Stream& stream, const TensorView& ids, const TensorView& table, const TensorView& y) override;
  void embed_backward(Stream& stream, const TensorView& ids, const TensorView& dy,
                      const TensorView& dtable) override;
  void softmax_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& labels,
                             float label_smoothing, const ExampleRows& rows, const TensorView& dlogits,
                             MetricSums* sums) override;
  void softmax(Stream& stream, const TensorView& logits, const TensorView& probabilities) override;
  void softmax_backward(Stream& stream, const TensorView& p, const TensorView& dy, const TensorView& dx) override;
  void soft_cross_entropy(Stream& stream, const TensorView& logits, const TensorView& targets,
                          float label_smoothing, const ExampleRows& rows, const TensorView& dlogits,
                          MetricSums* sums) override;
  void element_loss(Stream& stream, ElementLoss loss, const TensorView& x, const TensorView& targets,
                    float label_smoothing, const ExampleRows& rows, const TensorView& dx,
                    MetricSums* sums) override;
  void cosine_loss(Stream& stream, const TensorView& x, const TensorView& targets, const ExampleRows& rows,
                   const TensorView& dx, MetricSums* sums) override;
  void add_losses(Stream& stream, const TensorView& losses, const ExampleRows& rows, MetricSums* sums) override;
  void count_top(Stream& stream, const TensorView& x, const TensorView& labels, int k, const ExampleRows& rows,
                 MetricSums* sums) override;
  void count_confusions(Stream& stream, const TensorView& x, const TensorView& labels, const StepScalars* scalars,
                        const TensorView& counts) override;
  void count_scores(Stream& stream, const TensorView& x, const TensorView& labels, const ScoreBuckets& buckets,
                    const StepScalars* scalars, const TensorView& counts) override;
  void example_weights(Stream& stream, const TensorView& labels, std::span<const float> by_class,
                       const TensorView& given, const TensorView& weights) override;
  void adam(Stream& stream, const Parameters& parameters, const TensorView& gradients,
            const TensorView& first_moment, const TensorView& second_moment,
            std::span<const UpdateRange<AdamOptions>> ranges, const StepScalars* scalars) override;
  void sgd(Stream& stream, const Parameters& parameters, const TensorView& gradients, const TensorView& velocity,
           std::span<const UpdateRange<SgdOptions>> ranges, const StepScalars* scalars) override;
  void add_squares(Stream& stream, const TensorView& x, GradientNorm* norm) override;
  void clip_factor(Stream& stream, float max_norm, GradientNorm* norm) override;
  void clamp(Stream& stream, const TensorView& x, float limit) override;
  void average(Stream& stream, const TensorView& weights, const StepScalars* scalars,
               const TensorView& average) override;
  void look_ahead(Stream& stream, const Parameters& parameters, const StepScalars* scalars,
                  const TensorView& slow) override;

 protected:
  static constexpr auto kHalf = check::Half::kAccepted;

  template <typename... Arguments>
  explicit GpuKernels(Arguments&&... arguments) : launches_(std::forward<Arguments>(arguments)...) {}

  // Compute products of checked operands; `bias` may be undefined.
  virtual void dense_product(Stream& stream, const TensorView& x, const TensorView& weights,
                             const TensorView& bias, const TensorView& y, Precision precision) = 0;
  virtual void dense_data_gradient(Stream& stream, const TensorView& dy, const TensorView& weights,
                                   const TensorView& dx, Precision precision) = 0;
  virtual void dense_weights_gradient(Stream& stream, const TensorView& x, const TensorView& dy,
                                      const TensorView& dweights, Precision precision) = 0;
  virtual void batched_product(Stream& stream, const Matrices& a, const Matrices& b, float alpha,
                               const Matrices& result, Precision precision) = 0;
  virtual void conv_product(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                            const TensorView& y, const ConvOptions& options) = 0;
  virtual void conv_data_gradient(Stream& stream, const TensorView& dy, const TensorView& weights,
                                  const TensorView& dx, const ConvOptions& options) = 0;
  virtual void conv_weights_gradient(Stream& stream, const TensorView& x, const TensorView& dy,
                                     const TensorView& dweights, const ConvOptions& options) = 0;

  Launches launches_;

 private:
  // REQUIRE: computes_directly().
  void direct_conv_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                           const TensorView& y, const ConvOptions& options, Activation activation);
  void bias_activation(Stream& stream, const char* kernel, const TensorView& y, const TensorView& bias,
                       Activation activation);
  void bias_gradient(Stream& stream, const char* kernel, const TensorView& dy,
                     const TensorView& dbias);  // none if dbias is undefined
};

}  // namespace headrace::cuda
