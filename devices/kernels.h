// The mathematics that a trainer needs, submitted to a stream. One implementation per device; the CPU's is the
// reference for all others.
//
// Conventions, for every function:
//  - Activations are channels-last: images are (N, H, W, C), dense layers act on (rows, features).
//  - All tensors are f32 unless said otherwise, contiguous, in this device's memory. Outputs are overwritten
//    unless the name says accumulate. No aliasing unless said.
//  - A device whose activation_type() is bf16 for some precision takes activations and their gradients (x, y, dx,
//    dy, a, b, sum, into) in bf16 too: in dense layers, convolutions and batched products each independently,
//    elsewhere all tensors of a call alike. In that precision it takes the weights of dense layers and
//    convolutions in bf16 too, with the same bits as from f32 weights that round to them. Other parameters,
//    gradients of parameters, statistics, logits and values derived from logits are always f32. Results are
//    computed in f32 and rounded once.
//  - A call checks shapes at once (throws ConfigError) and only submits; results exist in stream order. The views'
//    memory must live until then. Calls may be captured; pointers are dereferenced at each launch.
//  - `rows` is a pointer to device memory holding how many leading rows of the batch are real examples; the
//    rows after it are padding and must not influence any result that is shared between rows.
//  - The same inputs give the same bits, whatever else the machine does. Numbers below 2^-126 may count as zeros.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "headrace/devices/base/api.h"
#include "headrace/devices/kernel_options.h"
#include "headrace/devices/stream.h"
#include "headrace/devices/tensor.h"

namespace HEADRACE_API headrace {

class Kernels {
 public:
  virtual ~Kernels() = default;

  // Returns whether Precision::kBF16 is faster than kF32 here (AMX, or AMD's AVX512_BF16, on a CPU; tensor cores
  // on a GPU).
  virtual bool prefers_bf16() const noexcept = 0;

  // Returns the type for storing activations and their gradients at that precision: f32 or bf16.
  virtual DType activation_type(Precision) const noexcept { return DType::kF32; }
  // Returns the type for the weights of dense layers and convolutions at that precision: f32, or bf16 if each call
  // would otherwise begin by converting them.
  virtual DType product_weights_type(Precision) const noexcept { return DType::kF32; }
  // Makes the device choose, for each new problem, the fastest of a library's plans that repeat their bits, if it
  // has several and HEADRACE_CUDA_MATH does not say otherwise. They are timed once per machine, and the choice is
  // kept (devices/cuda/math/FORMAT.md): bits repeat from run to run there, but may differ elsewhere.
  virtual void tune_plans() {}
  // Returns the algorithms that the device's libraries chose, if bits depend on them: from a problem in words to
  // the choice's name. Grows with the first call of each problem; empty if nothing is chosen. Thread-safe.
  virtual std::map<std::string, std::string> chosen_plans() const { return {}; }
  // Copies `from` to `to`, rounding to the nearest if `to` is narrower. Both f32 or bf16, on every device.
  virtual void convert(Stream&, const TensorView& from, const TensorView& to) = 0;

  // --- dense: x (M, K), weights (N, K), bias (N) or undefined, y (M, N) ---
  // y = activation(x weights' + bias)
  virtual void dense_forward(Stream&, const TensorView& x, const TensorView& weights, const TensorView& bias,
                             const TensorView& y, Activation, Precision) = 0;
  // dx = dy weights
  virtual void dense_backward_data(Stream&, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                                   Precision) = 0;
  // dweights = dy' x; dbias = sum of dy's rows (skipped when undefined)
  virtual void dense_backward_weights(Stream&, const TensorView& x, const TensorView& dy,
                                      const TensorView& dweights, const TensorView& dbias, Precision) = 0;

  // --- products of many matrices: those (R, C) of a tensor (N, H, R, C) or, if interleaved, (N, R, H, C), as the
  // heads of attention lie in rows of features ---
  struct Matrices {
    TensorView tensor;
    bool interleaved = false;
    bool transposed = false;  // each matrix stands for its transpose, as an operand
  };
  // result = alpha a b, for each n and h. Its gradients are such products, too: alpha dresult b' and alpha a'
  // dresult.
  virtual void batched_matmul(Stream&, const Matrices& a, const Matrices& b, float alpha, const Matrices& result,
                              Precision) = 0;
  // Sets those scores (N, H, T, S), f32, that a softmax over the last axis is to leave out to kMaskedScore: of
  // positions s whose mask (N, S), f32 or bf16, is 0, if it is defined, and if `causal` of those after position t.
  // A row that is left out as a whole gets equal probabilities.
  static constexpr float kMaskedScore = -1e30F;
  virtual void mask_scores(Stream&, const TensorView& scores, const TensorView& mask, bool causal) = 0;

  // --- convolution: x (N, H, W, C), weights (O, KH, KW, C / groups), bias (O) or undefined, y (N, H', W', O); the
  // first O / groups channels of y are a convolution of the first C / groups of x, and so on ---
  virtual void conv_forward(Stream&, const TensorView& x, const TensorView& weights, const TensorView& bias,
                            const TensorView& y, const ConvOptions&, Activation) = 0;
  virtual void conv_backward_data(Stream&, const TensorView& dy, const TensorView& weights, const TensorView& dx,
                                  const ConvOptions&) = 0;
  // Each of dweights and dbias is skipped when undefined.
  virtual void conv_backward_weights(Stream&, const TensorView& x, const TensorView& dy,
                                     const TensorView& dweights, const TensorView& dbias, const ConvOptions&) = 0;

  // --- a convolution of which only the bias learns, and its activation ---
  // Returns whether recomputing the input of conv_forward()'s activation is better than keeping it: the device
  // does convolution, bias and activation in one pass, and has conv_bias_backward(). x and y are of type
  // `activations`, weights of shape `weights`.
  virtual bool recomputes_activation(DType activations, const Shape& weights, const ConvOptions&) const {
    (void)activations, (void)weights;
    return false;
  }
  // dbias = the sum over all pixels of dy * activation'(z), z being the input of the activation in conv_forward(x,
  // weights, bias). dy is of x's type. May throw ConfigError if recomputes_activation() is false.
  virtual void conv_bias_backward(Stream&, const TensorView& x, const TensorView& weights, const TensorView& bias,
                                  const TensorView& dy, const TensorView& dbias, const ConvOptions&,
                                  Activation) = 0;

  // --- depthwise convolution: x (N, H, W, C), weights f32 (C M, KH, KW, 1), bias (C M) or undefined, y (N, H',
  // W', C M); channel o of y is a convolution of channel o / M of x. Sums are f32, ConvOptions::precision does not
  // count ---
  virtual void depthwise_forward(Stream&, const TensorView& x, const TensorView& weights, const TensorView& bias,
                                 const TensorView& y, const ConvOptions&, Activation) = 0;
  virtual void depthwise_backward_data(Stream&, const TensorView& dy, const TensorView& weights,
                                       const TensorView& dx, const ConvOptions&) = 0;
  // Each of dweights and dbias is skipped when undefined.
  virtual void depthwise_backward_weights(Stream&, const TensorView& x, const TensorView& dy,
                                          const TensorView& dweights, const TensorView& dbias,
                                          const ConvOptions&) = 0;

  // --- elementwise ---
  // y = activation(y + bias), in place; y (..., C), bias (C) or undefined. dbias is that of
  // conv_backward_weights().
  virtual void add_bias(Stream&, const TensorView& bias, const TensorView& y, Activation) = 0;
  virtual void activation_forward(Stream&, Activation, const TensorView& x, const TensorView& y) = 0;
  // dx = dy * f'(x). `x` is the forward result if slope_from_result(); for kRelu it may be. dx may be dy. Neither
  // takes kSoftmax.
  virtual void activation_backward(Stream&, Activation, const TensorView& x, const TensorView& dy,
                                   const TensorView& dx) = 0;
  virtual void add(Stream&, const TensorView& a, const TensorView& b, const TensorView& sum) = 0;  // sum may be a
  virtual void accumulate(Stream&, const TensorView& x, const TensorView& into) = 0;               // into += x
  // sum = 1 to kMaxSummed parts of f32, added as one pairwise tree ((0+1)+(2+3))+...; sum may be parts[0].
  static constexpr std::size_t kMaxSummed = 64;
  virtual void sum_tree(Stream&, std::span<const TensorView> parts, const TensorView& sum) = 0;
  // y = factor x. x may be u8 or i64, or of another type than y; y may be x.
  virtual void scale(Stream&, const TensorView& x, const Factor& factor, const TensorView& y) = 0;
  // Keeps each element with probability 1 - rate, scaled by 1 / (1 - rate). The mask is a Philox function of
  // (seed, scalars->step, layer, global row, element in row): it does not depend on the replica count. Element e
  // of row r is kept when word e of Philox({.seed = seed, .epoch = low 32 bits of step, .record = r, .operation =
  // layer}) is at least rate * 2^32. The maximum layer is 65535; augmentations draw from the same keys, so dropout
  // needs a separate seed (mix_seed). Backward is the same call on dy. x may be y.
  virtual void dropout(Stream&, const TensorView& x, float rate, std::uint64_t seed, int layer,
                       const StepScalars* scalars, const TensorView& y) = 0;

  // Copies `columns` columns of `from` (M, K), from `from_column` on, to `to` (M, N), from `to_column` on; both of
  // one type.
  virtual void copy_columns(Stream&, const TensorView& from, std::int64_t from_column, const TensorView& to,
                            std::int64_t to_column, std::int64_t columns) = 0;

  // --- views of images: x, y (N, H, W, C) of one type ---
  // y[n, i, j, c] = x[n, i + down, j' + right, c], j' being j or, if mirrored, W - 1 - j. Pixels beyond the border
  // are reflected without repeating the edge: -1 is 1, H is H - 2. REQUIRES: shifts are smaller than the extents.
  virtual void shift_images(Stream&, const TensorView& x, const ImageShift&, const TensorView& y) = 0;

  // --- pooling, window, stride and padding equal in both axes, floor ---
  // `argmax` (u8, y's shape) receives the winner's position in the window: the last NaN, else the first on ties.
  virtual void max_pool_forward(Stream&, const TensorView& x, const TensorView& y, const TensorView& argmax,
                                const PoolOptions&) = 0;
  virtual void max_pool_backward(Stream&, const TensorView& dy, const TensorView& argmax, const TensorView& dx,
                                 const PoolOptions&) = 0;
  virtual void average_pool_forward(Stream&, const TensorView& x, const TensorView& y, const PoolOptions&) = 0;
  virtual void average_pool_backward(Stream&, const TensorView& dy, const TensorView& dx, const PoolOptions&) = 0;
  // x (N, H, W, C) -> y (N, C)
  virtual void global_average_pool_forward(Stream&, const TensorView& x, const TensorView& y) = 0;
  virtual void global_average_pool_backward(Stream&, const TensorView& dy, const TensorView& dx) = 0;

  // --- batch normalisation over all axes but the last; statistics over the real rows only ---
  struct BatchNorm {
    TensorView gamma, beta;                // (C); gamma undefined: scale fixed at 1
    TensorView running_mean, running_var;  // (C)
    TensorView saved_mean, saved_inv_std;  // (C), training only: from forward to backward
    float epsilon = 1e-3F;
    float momentum = 0.99F;  // running = momentum * running + (1 - momentum) * batch
    // Applied to the normalised values in the same pass: y is its result, dy the gradient of that. Its input is
    // not stored; backward recomputes it from x, so x, beta and gamma must be unchanged.
    Activation activation = Activation::kNone;
  };
  // Normalises with the batch's statistics (biased variance), updates the running ones (unbiased variance). With
  // no real rows the running statistics stay unchanged and replace the batch's.
  virtual void batch_norm_train(Stream&, const TensorView& x, const BatchNorm&, const StepScalars* scalars,
                                const TensorView& y) = 0;
  virtual void batch_norm_infer(Stream&, const TensorView& x, const BatchNorm&, const TensorView& y) = 0;
  // dgamma, dbeta are skipped when undefined. dx is 0 in the padding rows; it may be dy.
  virtual void batch_norm_backward(Stream&, const TensorView& x, const TensorView& dy, const BatchNorm&,
                                   const StepScalars* scalars, const TensorView& dgamma, const TensorView& dbeta,
                                   const TensorView& dx) = 0;

  // --- batch normalisation with the statistics of the R replicas of the world: (R, 1 + 2 C) f32, a replica's row
  // being its count of numbers per channel, then the mean and the variance of each channel --- Computes a
  // replica's row from the values that batch_norm_train() saved for x with an epsilon of almost 0.
  virtual void pack_statistics(Stream&, const TensorView& x, const BatchNorm&, const StepScalars* scalars,
                               const TensorView& row) = 0;
  // Computes from all rows: saved_mean and saved_inv_std, the running statistics, `variance` (C), and
  // `inverse_counts` (2), the reciprocals of this replica's count and of the total; 0 for a count of 0. If all
  // counts are 0, the running statistics stay unchanged and replace the batch's.
  virtual void join_statistics(Stream&, const TensorView& statistics, int replica, const BatchNorm&,
                               const TensorView& variance, const TensorView& inverse_counts) = 0;
  // Corrects dx, which batch_norm_backward() made from this replica's sums, to all replicas' sums. `own` and
  // `joint` (2, C): dbeta and dgamma of this replica, and of all.
  virtual void join_input_gradient(Stream&, const TensorView& x, const BatchNorm&, const TensorView& own,
                                   const TensorView& joint, const TensorView& inverse_counts,
                                   const StepScalars* scalars, const TensorView& dx) = 0;

  // --- layer normalisation of each row of x (M, C); f32 only ---
  struct LayerNorm {
    TensorView gamma, beta;                // (C); each may be undefined: 1 and 0
    TensorView saved_mean, saved_inv_std;  // (M), from forward to backward
    float epsilon = 1e-3F;
  };
  // y = (x - the row's mean) / sqrt(its variance + epsilon) * gamma + beta, with the biased variance.
  virtual void layer_norm_forward(Stream&, const TensorView& x, const LayerNorm&, const TensorView& y) = 0;
  // dgamma, dbeta and dx are skipped when undefined; rows are added in an order that depends only on the shape. dx
  // may be dy.
  virtual void layer_norm_backward(Stream&, const TensorView& x, const TensorView& dy, const LayerNorm&,
                                   const TensorView& dgamma, const TensorView& dbeta, const TensorView& dx) = 0;

  // --- embedding: ids f32 (M), whole numbers; table (V, C), y (M, C); f32 only ---
  // Row m of y is row ids[m] of the table; NaN if there is none.
  virtual void embed(Stream&, const TensorView& ids, const TensorView& table, const TensorView& y) = 0;
  // dtable = for each row, the sum of the rows of dy that are its copies, added in their order.
  virtual void embed_backward(Stream&, const TensorView& ids, const TensorView& dy, const TensorView& dtable) = 0;

  // --- max pooling and the batch normalisation of its result, in fewer passes if the device can ---
  struct MaxPool {
    PoolOptions options;
    TensorView argmax;  // from forward to backward
  };
  // Runs max_pool_forward from x to `pooled`, then batch_norm_train from there to y.
  virtual void max_pool_batch_norm_train(Stream& stream, const TensorView& x, const MaxPool& pool,
                                         const TensorView& pooled, const BatchNorm& norm,
                                         const StepScalars* scalars, const TensorView& y) {
    max_pool_forward(stream, x, pooled, pool.argmax, pool.options);
    batch_norm_train(stream, pooled, norm, scalars, y);
  }
  // Runs batch_norm_backward on dy, then max_pool_backward from there to dx. May overwrite dy.
  virtual void max_pool_batch_norm_backward(Stream& stream, const TensorView& pooled, const TensorView& dy,
                                            const BatchNorm& norm, const StepScalars* scalars,
                                            const TensorView& dgamma, const TensorView& dbeta, const MaxPool& pool,
                                            const TensorView& dx) {
    batch_norm_backward(stream, pooled, dy, norm, scalars, dgamma, dbeta, dy);
    max_pool_backward(stream, dy, pool.argmax, dx, pool.options);
  }

  // --- loss: logits (M, K), labels i64 (M) in [0, K) ---
  // target = (1 - label_smoothing) for the label, plus label_smoothing / K for each class.
  // dlogits = (softmax - target) * inverse_global_rows for real rows, 0 for padding (skipped when undefined).
  // Adds loss, correct (argmax, first on ties) and examples of the real rows to *sums. A label out of range makes
  // the loss NaN and its gradient 0: the caller notices and reports it. With weights, a row's loss and gradient
  // are multiplied by its weight.
  virtual void softmax_cross_entropy(Stream&, const TensorView& logits, const TensorView& labels,
                                     float label_smoothing, const ExampleRows& rows, const TensorView& dlogits,
                                     MetricSums* sums) = 0;
  // probabilities may be logits
  virtual void softmax(Stream&, const TensorView& logits, const TensorView& probabilities) = 0;
  // dx = p (dy - the row's sum of p dy), p being softmax's result; dx may be dy.
  virtual void softmax_backward(Stream&, const TensorView& p, const TensorView& dy, const TensorView& dx) = 0;

  // --- other losses: like softmax_cross_entropy they count only real rows, give the gradient of their sum times
  // inverse_global_rows, 0 for padding, unless it is undefined, and add the rows' losses and examples to *sums ---
  // targets (M, K) f32, any numbers; target = (1 - label_smoothing) t + label_smoothing / K. A row's loss is the
  // sum of -target log(softmax).
  virtual void soft_cross_entropy(Stream&, const TensorView& logits, const TensorView& targets,
                                  float label_smoothing, const ExampleRows& rows, const TensorView& dlogits,
                                  MetricSums* sums) = 0;
  // targets: as many as elements of x, f32 or i64; target = (1 - label_smoothing) t + label_smoothing / 2. A row's
  // loss is the mean over its elements or, if sums_elements(), their sum.
  virtual void element_loss(Stream&, ElementLoss, const TensorView& x, const TensorView& targets,
                            float label_smoothing, const ExampleRows& rows, const TensorView& dx,
                            MetricSums* sums) = 0;
  // x, targets (M, ..., K) f32. A row's loss is the mean over its vectors of K numbers of the negative cosine of
  // the angle between x's vector and the target's. Vectors are divided by their norms, or multiplied by
  // kMaxInverseNorm if that is less.
  static constexpr float kMaxInverseNorm = 1e7F;  // as Keras does
  virtual void cosine_loss(Stream&, const TensorView& x, const TensorView& targets, const ExampleRows& rows,
                           const TensorView& dx, MetricSums* sums) = 0;
  // Adds losses (M) that were computed elsewhere. No gradient.
  virtual void add_losses(Stream&, const TensorView& losses, const ExampleRows& rows, MetricSums* sums) = 0;

  // --- counts over the real rows of x (M, K); labels i64 (M), or f32 (M, K): a row's label is then its argmax,
  // first on ties. Labels out of range are not counted ---
  // Adds to *sums, as correct, the rows whose label is among the k largest of x, earlier ones first on ties, and
  // the examples; with weights it also adds those rows' weights to sums->loss. NaN is never among them.
  virtual void count_top(Stream&, const TensorView& x, const TensorView& labels, int k, const ExampleRows& rows,
                         MetricSums* sums) = 0;
  // counts (K, K) i64: adds 1 for each row without NaN at its label and its argmax, first on ties.
  virtual void count_confusions(Stream&, const TensorView& x, const TensorView& labels, const StepScalars* scalars,
                                const TensorView& counts) = 0;

  // counts (K, B, 2) i64, B = buckets.count: adds 1 for each row and each column k at the bucket of its score and
  // whether it is positive, by labels i64 (M): a class number equal to k or, for K = 1, above 0; or by labels
  // f32 or i64 of x's shape, or (M) if K = 1: at least 0.5. NaN is in the first bucket if positive, else the last.
  virtual void count_scores(Stream&, const TensorView& x, const TensorView& labels, const ScoreBuckets& buckets,
                            const StepScalars* scalars, const TensorView& counts) = 0;
  // weights (M) = by_class[c] times given[m], c being the row's class: labels as for count_top(), or one f32 per
  // row, which is rounded. NaN for a class without a weight. `given` (M) f32 may be undefined: 1.
  virtual void example_weights(Stream&, const TensorView& labels, std::span<const float> by_class,
                               const TensorView& given, const TensorView& weights) = 0;

  // --- optimizers ---
  // Update ranges of arenas of one size, in ascending order, without overlap; other elements stay unchanged.
  virtual void adam(Stream&, const Parameters& parameters, const TensorView& gradients,
                    const TensorView& first_moment, const TensorView& second_moment,
                    std::span<const UpdateRange<AdamOptions>> ranges, const StepScalars* scalars) = 0;
  // `velocity` may be undefined if no range has a momentum.
  virtual void sgd(Stream&, const Parameters& parameters, const TensorView& gradients, const TensorView& velocity,
                   std::span<const UpdateRange<SgdOptions>> ranges, const StepScalars* scalars) = 0;
  virtual void muon(Stream&, std::span<const MuonMatrix> matrices, const MuonOptions&,
                    const StepScalars* scalars) = 0;

  // --- around an update ---
  // Adds the squares of x to norm->squares: f32 partial sums, added in f64, in an order that depends only on the
  // number of elements.
  virtual void add_squares(Stream&, const TensorView& x, GradientNorm* norm) = 0;
  // Sets norm->factor to 1, or if the norm (the root of the squares) is above max_norm, to the factor that scales
  // it to max_norm; NaN if the norm is not finite.
  virtual void clip_factor(Stream&, float max_norm, GradientNorm* norm) = 0;
  // Clamps elements of x to [-limit, limit]; a NaN stays one.
  virtual void clamp(Stream&, const TensorView& x, float limit) = 0;
  // average = weights + scalars->average_decay (average - weights); if the decay is 0, exactly the weights.
  virtual void average(Stream&, const TensorView& weights, const StepScalars* scalars,
                       const TensorView& average) = 0;
  // slow += share (parameters - slow), then parameters = slow; does nothing if the share, scalars->slow_share, is
  // 0.
  virtual void look_ahead(Stream&, const Parameters& parameters, const StepScalars* scalars,
                          const TensorView& slow) = 0;
};

}  // namespace headrace
