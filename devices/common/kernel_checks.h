// The rules of kernels' arguments, for the implementations of Kernels: each breach is a ConfigError with the
// kernel's name in front. Private to the backends.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/kernels.h"

namespace headrace::check {

[[noreturn]] inline void refuse(const char* kernel, const std::string& what) {
  throw ConfigError(std::string(kernel) + ": " + what);
}

// Refuses unless the rule about two shapes holds.
inline void need(bool holds, const char* kernel, const char* rule, const TensorView& a, const TensorView& b) {
  if (!holds)
    refuse(kernel, std::string(rule) + "; the shapes are " + a.shape.to_string() + " and " + b.shape.to_string());
}

// The shape and type rules of Kernels, for its implementations. Each throws ConfigError naming the kernel, the
// tensor and the shapes.

// Whether activations may also be bf16: only on devices that can store them so.
enum class Half { kRefused, kAccepted };
// Returns whether the weights of products may be bf16 on such a device.
constexpr Half half_weights(Precision precision) noexcept {
  return precision == Precision::kBF16 ? Half::kAccepted : Half::kRefused;
}

// x (M, K), weights (N, K), bias (N) or undefined, y (M, N); also for the gradients in their place.
void dense(const char* kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
           const TensorView& y, Half half = Half::kRefused, Half weights_half = Half::kRefused);
// Tensors of four axes with equally many matrices, whose extents fit; the result is not transposed.
void batched_matmul(const char* kernel, const Kernels::Matrices& a, const Kernels::Matrices& b,
                    const Kernels::Matrices& result, Half half = Half::kRefused);
// scores (N, H, T, S), f32; the mask (N, S) or undefined.
void mask_scores(const char* kernel, const TensorView& scores, const TensorView& mask);
// x (N, H, W, C), weights (O, KH, KW, C), bias (O) or undefined, y as the options determine.
void convolution(const char* kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
                 const TensorView& y, const ConvOptions& options, Half half = Half::kRefused,
                 Half weights_half = Half::kRefused);
// The bias's gradient of such a convolution, whose x and dy are of one type.
void conv_bias(const char* kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
               const TensorView& dy, const TensorView& dbias, const ConvOptions& options, Half half,
               Half weights_half);
// x (N, H, W, C), weights f32 (C M, KH, KW, 1), bias (C M) or undefined, y of x's type as the options determine.
void depthwise(const char* kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
               const TensorView& y, const ConvOptions& options, Half half);
// Throws if the device does not recompute the activation's input.
void recomputed(const char* kernel, const TensorView& weights, bool recomputes);
// `tensor` is an activation of the type and shape of `like`.
void same(const char* kernel, const TensorView& tensor, const TensorView& like, Half half = Half::kRefused);
// f32, of one shape; at most Kernels::kMaxSummed parts.
void sum_tree(const char* kernel, std::span<const TensorView> parts, const TensorView& sum);
// `vector` is f32 and has one element for each of `x`'s channels.
void channels(const char* kernel, const TensorView& vector, const TensorView& x);
// The bias may be undefined.
void add_bias(const char* kernel, const TensorView& bias, const TensorView& y, Activation activation, Half half);
void max_pool(const char* kernel, const TensorView& x, const TensorView& y, const TensorView& argmax,
              const PoolOptions& options, Half half = Half::kRefused);
void average_pool(const char* kernel, const TensorView& x, const TensorView& y, const PoolOptions& options,
                  Half half = Half::kRefused);
// Matrices of one type with equally many rows; the columns exist in both.
void columns(const char* kernel, const TensorView& from, std::int64_t from_column, const TensorView& to,
             std::int64_t to_column, std::int64_t columns, Half half = Half::kRefused);
void global_pool(const char* kernel, const TensorView& x, const TensorView& y, Half half = Half::kRefused);
// x u8, i64 or an activation, y an activation of its shape.
void scale(const char* kernel, const TensorView& x, const TensorView& y, Half half = Half::kRefused);
// Both f32 or bf16, of one shape.
void convert(const char* kernel, const TensorView& from, const TensorView& to);
void batch_norm(const char* kernel, const TensorView& x, const Kernels::BatchNorm& norm,
                Half half = Half::kRefused);
// In training the saved statistics are also defined.
void batch_norm_training(const char* kernel, const TensorView& x, const Kernels::BatchNorm& norm,
                         Half half = Half::kRefused);
// x pooled to `pooled` according to the options, the training norm of that, y of its shape; also for the
// gradients.
void max_pool_batch_norm(const char* kernel, const TensorView& x, const Kernels::MaxPool& pool,
                         const TensorView& pooled, const Kernels::BatchNorm& norm, const TensorView& y,
                         Half half = Half::kRefused);
// f32, of this many elements.
void numbers(const char* kernel, const char* name, const TensorView& view, std::int64_t elements);
// (R, 1 + 2 C) of a norm of C channels, `replica` one of them.
void statistics(const char* kernel, const TensorView& statistics, int replica, const Kernels::BatchNorm& norm);
// Gradients of gamma and beta, each if defined: one number per channel of x.
void norm_gradients(const char* kernel, const TensorView& dgamma, const TensorView& dbeta, const TensorView& x);
// An activation of single elements; one that products and norms apply.
void elementwise(const char* kernel, Activation activation);
void fused(const char* kernel, Activation activation);
// x (M, C), f32; gamma and beta (C), each if defined, the saved statistics (M).
void layer_norm(const char* kernel, const TensorView& x, const Kernels::LayerNorm& norm);
// ids (M), table (V, C), y (M, C), f32; V is at most 2^24, up to which f32 has all whole numbers.
void embedding(const char* kernel, const TensorView& ids, const TensorView& table, const TensorView& y);
// logits (M, K), labels i64 (M).
void loss(const char* kernel, const TensorView& logits, const TensorView& labels);
// x (M, K); labels i64 (M) or f32 (M, K).
void classes(const char* kernel, const TensorView& x, const TensorView& labels);
// logits (M, K); targets and, if defined, the gradient have the same shape.
void soft_loss(const char* kernel, const TensorView& logits, const TensorView& targets,
               const TensorView& gradient);
// As many targets as elements of x, f32 or i64; the gradient, if defined, has x's shape.
void element_loss(const char* kernel, const TensorView& x, const TensorView& targets, const TensorView& gradient);
// losses (M), f32: a scalar would be the sum or mean of a batch that may not be the whole one.
// x and targets f32 of one shape of at least two axes; the gradient may be undefined.
void cosine_loss(const char* kernel, const TensorView& x, const TensorView& targets, const TensorView& gradient);
void example_losses(const char* kernel, const TensorView& losses);
// k is at least 1.
void top(const char* kernel, int k);
// counts (K, K) i64 for x (M, K).
void confusions(const char* kernel, const TensorView& x, const TensorView& counts);
// The weights, if there are any, are one f32 for each row of x.
void weights(const char* kernel, const ExampleRows& rows, const TensorView& x);
// x (M, K), labels i64 (M), or f32 or i64 with as many elements as x; counts (K, buckets, 2) i64.
void scores(const char* kernel, const TensorView& x, const TensorView& labels, const ScoreBuckets& buckets,
            const TensorView& counts);
// labels i64 (M), or f32 with M as first extent; given, if defined, and weights f32 (M).
void example_weights(const char* kernel, const TensorView& labels, std::span<const float> by_class,
                     const TensorView& given, const TensorView& weights);
// f32 or, if accepted, bf16; at least one axis, no empty extent.
void tensor(const char* kernel, const char* name, const TensorView& tensor, Half half = Half::kRefused);
// x and y are images of one shape; the shift is smaller than they are.
void shift(const char* kernel, const TensorView& x, const ImageShift& shift, const TensorView& y,
           Half half = Half::kRefused);
// An existing parameter group.
void group(const char* kernel, int group);
// The tensors of an update are f32 arenas of one shape, as is the bf16 copy of the parameters; SGD's velocity may
// be missing if no range has a momentum. The ranges are ascending and within the arenas, each of an existing
// parameter group.
void adam(const Parameters& parameters, const TensorView& gradients, const TensorView& first_moment,
          const TensorView& second_moment, std::span<const UpdateRange<AdamOptions>> ranges);
void sgd(const Parameters& parameters, const TensorView& gradients, const TensorView& velocity,
         std::span<const UpdateRange<SgdOptions>> ranges);
// Every matrix has its three tensors, of one shape with at least two axes, and perhaps a bf16 copy; the options
// are valid.
void muon(std::span<const MuonMatrix> matrices, const MuonOptions& options);
// Lookahead's slow weights have the parameters' shape; the parameters may have a bf16 copy.
void look_ahead(const Parameters& parameters, const TensorView& slow);
// The limit of a norm or an element: a finite number above 0.
void limit(const char* kernel, float limit);
// A dropout rate in [0, 1), a layer number below 2^16.
void dropout(const char* kernel, float rate, int layer);

}  // namespace headrace::check

// Where the matrices of a batched product lie in memory. Private to the backends.

namespace headrace {

// `outer` times `inner` matrices, each by rows; distances in elements.
struct MatrixBatch {
  std::int64_t outer = 1, inner = 1, rows = 0, columns = 0;
  std::int64_t row_step = 0;                    // from a row to the next
  std::int64_t outer_step = 0, inner_step = 0;  // from a matrix to the next
};

// REQUIRES: the tensor has four axes.
inline MatrixBatch matrix_batch(const Kernels::Matrices& matrices) {
  const Shape& shape = matrices.tensor.shape;
  const bool interleaved = matrices.interleaved;
  MatrixBatch batch{.outer = shape[0],
                    .inner = shape[interleaved ? 2 : 1],
                    .rows = shape[interleaved ? 1 : 2],
                    .columns = shape[3]};
  batch.row_step = interleaved ? batch.inner * batch.columns : batch.columns;
  batch.outer_step = batch.inner * batch.rows * batch.columns;
  batch.inner_step = interleaved ? batch.columns : batch.rows * batch.columns;
  return batch;
}

}  // namespace headrace
