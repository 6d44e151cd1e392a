// Submission of the CPU kernels' work, and their view of tensors. Private to the CPU backend.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/cpu_stream.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/onednn.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/kernels.h"
#include "headrace/devices/tensor.h"

namespace headrace::cpu {

// Returns `stream` as a CpuStream. Throws DeviceError for another device's stream.
CpuStream& cpu_stream(Stream& stream);

template <typename Work>
void submit(Stream& stream, Work work) {
  cpu_stream(stream).submit([work = std::move(work)] {
    const FlushDenormals guard;
    work();
  });
}
inline void submit(Stream& stream, BoundKernel kernel) {
  submit(stream, [kernel = std::move(kernel)] { kernel->run(); });
}

inline float* f32(const TensorView& view) noexcept { return view.as<float>(); }

// Activations and weights may be bf16.
constexpr auto kHalf = check::Half::kAccepted;

template <typename Function>
void with_type(const TensorView& view, const Function& function) {
  with_type(view.dtype, function);
}

// The CPU's table of mathematics. A function checks shapes, binds arguments and submits; each file
// cpu_kernels_*.cpp defines those of one area.

class CpuKernels final : public Kernels {
 public:
  CpuKernels(const std::string& device, int threads, Bf16Products products);

  bool prefers_bf16() const noexcept override;
  DType activation_type(Precision) const noexcept override;

  // --- dense layers and convolutions: cpu_kernels_products.cpp ---
  void dense_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                     const TensorView& y, Activation activation, Precision precision) override;
  void dense_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                           Precision precision) override;
  void dense_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                              const TensorView& dweights, const TensorView& dbias, Precision precision) override;
  void batched_matmul(Stream& stream, const Matrices& a, const Matrices& b, float alpha, const Matrices& result,
                      Precision precision) override;
  void conv_forward(Stream& stream, const TensorView& x, const TensorView& weights, const TensorView& bias,
                    const TensorView& y, const ConvOptions& options, Activation activation) override;
  void conv_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                          const ConvOptions& options) override;
  void conv_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy, const TensorView& dweights,
                             const TensorView& dbias, const ConvOptions& options) override;
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

  // --- elementwise: cpu_kernels_elements.cpp ---
  void add_bias(Stream& stream, const TensorView& bias, const TensorView& y, Activation activation) override;
  void convert(Stream& stream, const TensorView& from, const TensorView& to) override;
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

  // --- pooling and views of images: cpu_kernels_images.cpp ---
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

  // --- batch normalisation: cpu_kernels_norms.cpp ---
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

  // --- layer normalisation and embedding: cpu_kernels_sequences.cpp ---
  void layer_norm_forward(Stream& stream, const TensorView& x, const LayerNorm& norm,
                          const TensorView& y) override;
  void layer_norm_backward(Stream& stream, const TensorView& x, const TensorView& dy, const LayerNorm& norm,
                           const TensorView& dgamma, const TensorView& dbeta, const TensorView& dx) override;
  void mask_scores(Stream& stream, const TensorView& scores, const TensorView& mask, bool causal) override;
  void embed(Stream& stream, const TensorView& ids, const TensorView& table, const TensorView& y) override;
  void embed_backward(Stream& stream, const TensorView& ids, const TensorView& dy,
                      const TensorView& dtable) override;

  // --- losses: cpu_kernels_losses.cpp; counts: cpu_kernels_counts.cpp ---
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

  // --- optimizers and around an update: cpu_kernels_updates.cpp ---
  void adam(Stream& stream, const Parameters& parameters, const TensorView& gradients,
            const TensorView& first_moment, const TensorView& second_moment,
            std::span<const UpdateRange<AdamOptions>> ranges, const StepScalars* scalars) override;
  void sgd(Stream& stream, const Parameters& parameters, const TensorView& gradients, const TensorView& velocity,
           std::span<const UpdateRange<SgdOptions>> ranges, const StepScalars* scalars) override;
  void muon(Stream& stream, std::span<const MuonMatrix> matrices, const MuonOptions& options,
            const StepScalars* scalars) override;
  void add_squares(Stream& stream, const TensorView& x, GradientNorm* norm) override;
  void clip_factor(Stream& stream, float max_norm, GradientNorm* norm) override;
  void clamp(Stream& stream, const TensorView& x, float limit) override;
  void average(Stream& stream, const TensorView& weights, const StepScalars* scalars,
               const TensorView& average) override;
  void look_ahead(Stream& stream, const Parameters& parameters, const StepScalars* scalars,
                  const TensorView& slow) override;

 private:
  OneDnn onednn_;
};

}  // namespace headrace::cpu
