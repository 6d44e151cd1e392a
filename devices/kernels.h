// The mathematics that a trainer needs, submitted to a stream. One implementation per device; the CPU's is the
// reference for all others.
//
// A kernel is declared once: a struct of its arguments in namespace kernel, with its contract, and a place in
// HEADRACE_KERNELS. From that follow its function, kernels.softmax(stream, {logits, probabilities}), its name in
// errors, and the body that each backend owes. Its check (common/kernel_checks.cpp) runs before any backend.
//
// Conventions, for every kernel:
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
//    memory must live until then; what a span shows is copied. Calls may be captured; pointers are dereferenced at
//    each launch.
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
namespace kernel {

// Copies `from` to `to`, rounding to the nearest if `to` is narrower. Both f32 or bf16, on every device.
struct Convert {
  TensorView from, to;
};

// --- dense: x (M, K), weights (N, K), bias (N) or undefined, y (M, N) ---
// y = activation(x weights' + bias)
struct DenseForward {
  TensorView x, weights, bias, y;
  Activation activation;
  Precision precision;
};
// dx = dy weights
struct DenseBackwardData {
  TensorView dy, weights, dx;
  Precision precision;
};
// dweights = dy' x; dbias = sum of dy's rows (skipped when undefined)
struct DenseBackwardWeights {
  TensorView x, dy, dweights, dbias;
  Precision precision;
};

// --- products of many matrices ---
// result = alpha a b, for each n and h. Its gradients are such products: alpha dresult b', alpha a' dresult.
struct BatchedMatmul {
  Matrices a, b, result;
  float alpha;
  Precision precision;
};
// Sets those scores (N, H, T, S), f32, that a softmax over the last axis is to leave out to kMaskedScore: of
// positions s whose mask (N, S), f32 or bf16, is 0, if it is defined, and if `causal` of those after position t.
// A row that is left out as a whole gets equal probabilities.
struct MaskScores {
  TensorView scores, mask;
  bool causal;
};

// --- convolution: x (N, H, W, C), weights (O, KH, KW, C / groups), bias (O) or undefined, y (N, H', W', O); the
// first O / groups channels of y are a convolution of the first C / groups of x, and so on ---
struct ConvForward {
  TensorView x, weights, bias, y;
  ConvOptions options;
  Activation activation;
};
struct ConvBackwardData {
  TensorView dy, weights, dx;
  ConvOptions options;
};
// Each of dweights and dbias is skipped when undefined.
struct ConvBackwardWeights {
  TensorView x, dy, dweights, dbias;
  ConvOptions options;
};
// Of a convolution of which only the bias learns, with its activation: dbias = the sum over all pixels of
// dy * activation'(z), z being the input of the activation in conv_forward(x, weights, bias). dy is of x's type.
// May throw ConfigError if recomputes_activation() is false.
struct ConvBiasBackward {
  TensorView x, weights, bias, dy, dbias;
  ConvOptions options;
  Activation activation;
};

// --- depthwise convolution: x (N, H, W, C), weights f32 (C M, KH, KW, 1), bias (C M) or undefined, y (N, H',
// W', C M); channel o of y is a convolution of channel o / M of x. Sums are f32, whatever the precision ---
struct DepthwiseForward {
  TensorView x, weights, bias, y;
  ConvOptions options;
  Activation activation;
};
struct DepthwiseBackwardData {
  TensorView dy, weights, dx;
  ConvOptions options;
};
// Each of dweights and dbias is skipped when undefined.
struct DepthwiseBackwardWeights {
  TensorView x, dy, dweights, dbias;
  ConvOptions options;
};

// --- elementwise ---
// y = activation(y + bias), in place; y (..., C), bias (C) or undefined. dbias: by conv_backward_weights().
struct AddBias {
  TensorView bias, y;
  Activation activation;
};
// Neither this nor its gradient takes kSoftmax.
struct ActivationForward {
  Activation activation;
  TensorView x, y;
};
// dx = dy * f'(x). `x` is the forward result if slope_from_result(); for kRelu it may be. dx may be dy.
struct ActivationBackward {
  Activation activation;
  TensorView x, dy, dx;
};
// sum may be a
struct Add {
  TensorView a, b, sum;
};
// into += x
struct Accumulate {
  TensorView x, into;
};
// sum = 1 to kMaxSummed parts of f32, added as one pairwise tree ((0+1)+(2+3))+...; sum may be parts[0].
struct SumTree {
  std::span<const TensorView> parts;
  TensorView sum;
};
// y = factor x. x may be u8 or i64, or of another type than y; y may be x.
struct Scale {
  TensorView x, y;
  Factor factor;
};
// Keeps each element with probability 1 - rate, scaled by 1 / (1 - rate). The mask is a Philox function of
// (seed, scalars->step, layer, global row, element in row): it does not depend on the replica count. Element e
// of row r is kept when word e of Philox({.seed = seed, .epoch = low 32 bits of step, .record = r, .operation =
// layer}) is at least rate * 2^32. The maximum layer is 65535; augmentations draw from the same keys, so dropout
// needs a separate seed (mix_seed). Backward is the same call on dy. x may be y.
struct Dropout {
  TensorView x, y;
  float rate;
  std::uint64_t seed;
  int layer;
  const StepScalars* scalars;
};
// Copies `columns` columns of `from` (M, K), from `from_column` on, to `to` (M, N), from `to_column` on; both of
// one type.
struct CopyColumns {
  TensorView from, to;
  std::int64_t from_column, to_column, columns;
};

// --- views of images: x, y (N, H, W, C) of one type ---
// y[n, i, j, c] = x[n, i + down, j' + right, c], j' being j or, if mirrored, W - 1 - j. Pixels beyond the border
// are reflected without repeating the edge: -1 is 1, H is H - 2. REQUIRES: shifts are smaller than the extents.
struct ShiftImages {
  TensorView x, y;
  ImageShift shift;
};

// --- pooling, window, stride and padding equal in both axes, floor ---
// `argmax` (u8, y's shape) receives the winner's position in the window: the last NaN, else the first on ties.
struct MaxPoolForward {
  TensorView x, y, argmax;
  PoolOptions options;
};
struct MaxPoolBackward {
  TensorView dy, argmax, dx;
  PoolOptions options;
};
struct AveragePoolForward {
  TensorView x, y;
  PoolOptions options;
};
struct AveragePoolBackward {
  TensorView dy, dx;
  PoolOptions options;
};
// x (N, H, W, C) -> y (N, C)
struct GlobalAveragePoolForward {
  TensorView x, y;
};
struct GlobalAveragePoolBackward {
  TensorView dy, dx;
};

// --- batch normalisation over all axes but the last; statistics over the real rows only ---
// Normalises with the batch's statistics (biased variance), updates the running ones (unbiased variance). With
// no real rows the running statistics stay unchanged and replace the batch's.
struct BatchNormTrain {
  TensorView x, y;
  BatchNorm norm;
  const StepScalars* scalars;
};
struct BatchNormInfer {
  TensorView x, y;
  BatchNorm norm;
};
// dgamma, dbeta are skipped when undefined. dx is 0 in the padding rows; it may be dy.
struct BatchNormBackward {
  TensorView x, dy, dgamma, dbeta, dx;
  BatchNorm norm;
  const StepScalars* scalars;
};

// --- batch normalisation with the statistics of the R replicas of the world: (R, 1 + 2 C) f32, a replica's row
// being its count of numbers per channel, then the mean and the variance of each channel ---
// Computes a replica's row from the values that batch_norm_train() saved for x with an epsilon of almost 0.
struct PackStatistics {
  TensorView x, row;
  BatchNorm norm;
  const StepScalars* scalars;
};
// Computes from all rows: saved_mean and saved_inv_std, the running statistics, `variance` (C), and
// `inverse_counts` (2), the reciprocals of this replica's count and of the total; 0 for a count of 0. If all
// counts are 0, the running statistics stay unchanged and replace the batch's.
struct JoinStatistics {
  TensorView statistics, variance, inverse_counts;
  BatchNorm norm;
  int replica;
};
// Corrects dx, which batch_norm_backward() made from this replica's sums, to all replicas' sums. `own` and
// `joint` (2, C): dbeta and dgamma of this replica, and of all.
struct JoinInputGradient {
  TensorView x, own, joint, inverse_counts, dx;
  BatchNorm norm;
  const StepScalars* scalars;
};

// --- layer normalisation of each row of x (M, C); f32 only ---
// y = (x - the row's mean) / sqrt(its variance + epsilon) * gamma + beta, with the biased variance.
struct LayerNormForward {
  TensorView x, y;
  LayerNorm norm;
};
// dgamma, dbeta and dx are skipped when undefined; the order of sums depends only on the shape. dx may be dy.
struct LayerNormBackward {
  TensorView x, dy, dgamma, dbeta, dx;
  LayerNorm norm;
};

// --- embedding: ids f32 (M), whole numbers; table (V, C), y (M, C); f32 only ---
// Row m of y is row ids[m] of the table; NaN if there is none.
struct Embed {
  TensorView ids, table, y;
};
// dtable = for each row, the sum of the rows of dy that are its copies, added in their order.
struct EmbedBackward {
  TensorView ids, dy, dtable;
};

// --- max pooling and the batch normalisation of its result, in fewer passes if the device can ---
// Runs max_pool_forward from x to `pooled`, then batch_norm_train from there to y.
struct MaxPoolBatchNormTrain {
  TensorView x, pooled, y;
  MaxPool pool;
  BatchNorm norm;
  const StepScalars* scalars;
};
// Runs batch_norm_backward on dy, then max_pool_backward from there to dx. May overwrite dy.
struct MaxPoolBatchNormBackward {
  TensorView pooled, dy, dgamma, dbeta, dx;
  MaxPool pool;
  BatchNorm norm;
  const StepScalars* scalars;
};

// --- loss: logits (M, K), labels i64 (M) in [0, K) ---
// target = (1 - label_smoothing) for the label, plus label_smoothing / K for each class.
// dlogits = (softmax - target) * inverse_global_rows for real rows, 0 for padding (skipped when undefined).
// Adds loss, correct (argmax, first on ties) and examples of the real rows to *sums. A label out of range makes
// the loss NaN and its gradient 0: the caller notices and reports it. With weights, a row's loss and gradient
// are multiplied by its weight.
struct SoftmaxCrossEntropy {
  TensorView logits, labels, dlogits;
  float label_smoothing;
  ExampleRows rows;
  MetricSums* sums;
};
// probabilities may be logits
struct Softmax {
  TensorView logits, probabilities;
};
// dx = p (dy - the row's sum of p dy), p being softmax's result; dx may be dy.
struct SoftmaxBackward {
  TensorView p, dy, dx;
};

// --- other losses: like softmax_cross_entropy they count only real rows, give the gradient of their sum times
// inverse_global_rows, 0 for padding, unless it is undefined, and add the rows' losses and examples to *sums ---
// targets (M, K) f32, any numbers; target = (1 - label_smoothing) t + label_smoothing / K. A row's loss is the
// sum of -target log(softmax).
struct SoftCrossEntropy {
  TensorView logits, targets, dlogits;
  float label_smoothing;
  ExampleRows rows;
  MetricSums* sums;
};
// targets: as many as elements of x, f32 or i64; target = (1 - label_smoothing) t + label_smoothing / 2. A row's
// loss is the mean over its elements or, if sums_elements(), their sum.
struct ElementLosses {
  ElementLoss loss;
  TensorView x, targets, dx;
  float label_smoothing;
  ExampleRows rows;
  MetricSums* sums;
};
// x, targets (M, ..., K) f32. A row's loss is the mean over its vectors of K numbers of the negative cosine of
// the angle between x's vector and the target's. Vectors are divided by their norms, or multiplied by
// kMaxInverseNorm if that is less.
struct CosineLoss {
  TensorView x, targets, dx;
  ExampleRows rows;
  MetricSums* sums;
};
// Adds losses (M) that were computed elsewhere. No gradient.
struct AddLosses {
  TensorView losses;
  ExampleRows rows;
  MetricSums* sums;
};

// --- counts over the real rows of x (M, K); labels i64 (M), or f32 (M, K): a row's label is then its argmax,
// first on ties. Labels out of range are not counted ---
// Adds to *sums, as correct, the rows whose label is among the k largest of x, earlier ones first on ties, and
// the examples; with weights it also adds those rows' weights to sums->loss. NaN is never among them.
struct CountTop {
  TensorView x, labels;
  int k;
  ExampleRows rows;
  MetricSums* sums;
};
// counts (K, K) i64: adds 1 for each row without NaN at its label and its argmax, first on ties.
struct CountConfusions {
  TensorView x, labels, counts;
  const StepScalars* scalars;
};
// counts (K, B, 2) i64, B = buckets.count: adds 1 for each row and each column k at the bucket of its score and
// whether it is positive, by labels i64 (M): a class number equal to k or, for K = 1, above 0; or by labels
// f32 or i64 of x's shape, or (M) if K = 1: at least 0.5. NaN is in the first bucket if positive, else the last.
struct CountScores {
  TensorView x, labels, counts;
  ScoreBuckets buckets;
  const StepScalars* scalars;
};
// weights (M) = by_class[c] times given[m], c being the row's class: labels as for count_top(), or one f32 per
// row, which is rounded. NaN for a class without a weight. `given` (M) f32 may be undefined: 1.
struct ExampleWeights {
  TensorView labels, given, weights;
  std::span<const float> by_class;
};

// --- optimizers: update ranges of arenas of one size, in ascending order, without overlap; other elements stay
// unchanged, and all do in a step that failed (StepScalars) ---
struct Adam {
  Parameters parameters;
  TensorView gradients, first_moment, second_moment;
  std::span<const UpdateRange<AdamOptions>> ranges;
  const StepScalars* scalars;
};
// `velocity` may be undefined if no range has a momentum.
struct Sgd {
  Parameters parameters;
  TensorView gradients, velocity;
  std::span<const UpdateRange<SgdOptions>> ranges;
  const StepScalars* scalars;
};
struct Muon {
  std::span<const MuonMatrix> matrices;
  MuonOptions options;
  const StepScalars* scalars;
};

// --- around an update ---
// Adds the squares of x to norm->squares: f32 partial sums, added in f64, in an order that depends only on the
// number of elements.
struct AddSquares {
  TensorView x;
  GradientNorm* norm;
};
// Sets norm->factor to 1, or if the norm (the root of the squares) is above max_norm, to the factor that scales
// it to max_norm; NaN if the norm is not finite.
struct ClipFactor {
  float max_norm;
  GradientNorm* norm;
};
// Clamps elements of x to [-limit, limit]; a NaN stays one.
struct Clamp {
  TensorView x;
  float limit;
};
// average = weights + scalars->average_decay (average - weights); if the decay is 0, exactly the weights.
struct Average {
  TensorView weights, average;
  const StepScalars* scalars;
};
// slow += scalars->slow_share (parameters - slow), then parameters = slow; does nothing if that share is 0.
struct LookAhead {
  Parameters parameters;
  const StepScalars* scalars;
  TensorView slow;
};

}  // namespace kernel

// Every kernel: its function and its arguments.
// clang-format off
#define HEADRACE_KERNELS(KERNEL) \
  KERNEL(convert, Convert) KERNEL(dense_forward, DenseForward) KERNEL(dense_backward_data, DenseBackwardData) \
  KERNEL(dense_backward_weights, DenseBackwardWeights) KERNEL(batched_matmul, BatchedMatmul) \
  KERNEL(mask_scores, MaskScores) KERNEL(conv_forward, ConvForward) \
  KERNEL(conv_backward_data, ConvBackwardData) KERNEL(conv_backward_weights, ConvBackwardWeights) \
  KERNEL(conv_bias_backward, ConvBiasBackward) KERNEL(depthwise_forward, DepthwiseForward) \
  KERNEL(depthwise_backward_data, DepthwiseBackwardData) \
  KERNEL(depthwise_backward_weights, DepthwiseBackwardWeights) KERNEL(add_bias, AddBias) \
  KERNEL(activation_forward, ActivationForward) KERNEL(activation_backward, ActivationBackward) \
  KERNEL(add, Add) KERNEL(accumulate, Accumulate) KERNEL(sum_tree, SumTree) KERNEL(scale, Scale) \
  KERNEL(dropout, Dropout) KERNEL(copy_columns, CopyColumns) KERNEL(shift_images, ShiftImages) \
  KERNEL(max_pool_forward, MaxPoolForward) KERNEL(max_pool_backward, MaxPoolBackward) \
  KERNEL(average_pool_forward, AveragePoolForward) KERNEL(average_pool_backward, AveragePoolBackward) \
  KERNEL(global_average_pool_forward, GlobalAveragePoolForward) \
  KERNEL(global_average_pool_backward, GlobalAveragePoolBackward) KERNEL(batch_norm_train, BatchNormTrain) \
  KERNEL(batch_norm_infer, BatchNormInfer) KERNEL(batch_norm_backward, BatchNormBackward) \
  KERNEL(pack_statistics, PackStatistics) KERNEL(join_statistics, JoinStatistics) \
  KERNEL(join_input_gradient, JoinInputGradient) KERNEL(layer_norm_forward, LayerNormForward) \
  KERNEL(layer_norm_backward, LayerNormBackward) KERNEL(embed, Embed) KERNEL(embed_backward, EmbedBackward) \
  KERNEL(max_pool_batch_norm_train, MaxPoolBatchNormTrain) \
  KERNEL(max_pool_batch_norm_backward, MaxPoolBatchNormBackward) \
  KERNEL(softmax_cross_entropy, SoftmaxCrossEntropy) KERNEL(softmax, Softmax) \
  KERNEL(softmax_backward, SoftmaxBackward) KERNEL(soft_cross_entropy, SoftCrossEntropy) \
  KERNEL(element_loss, ElementLosses) KERNEL(cosine_loss, CosineLoss) KERNEL(add_losses, AddLosses) \
  KERNEL(count_top, CountTop) KERNEL(count_confusions, CountConfusions) KERNEL(count_scores, CountScores) \
  KERNEL(example_weights, ExampleWeights) KERNEL(adam, Adam) KERNEL(sgd, Sgd) KERNEL(muon, Muon) \
  KERNEL(add_squares, AddSquares) KERNEL(clip_factor, ClipFactor) KERNEL(clamp, Clamp) \
  KERNEL(average, Average) KERNEL(look_ahead, LookAhead)
// clang-format on

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
  // Returns whether recomputing the input of conv_forward()'s activation is better than keeping it, where only the
  // bias learns: the device does convolution, bias and activation in one pass, and has conv_bias_backward(). x and
  // y are of type `activations`, weights of shape `weights`.
  virtual bool recomputes_activation(DType activations, const Shape& weights, const ConvOptions&) const {
    (void)activations, (void)weights;
    return false;
  }

  // Each function checks its arguments, then submits.
#define HEADRACE_KERNEL(function, Arguments) void function(Stream& stream, const kernel::Arguments& call);
  HEADRACE_KERNELS(HEADRACE_KERNEL)
#undef HEADRACE_KERNEL

 protected:
  // Submit what a function has checked.
#define HEADRACE_KERNEL(function, Arguments) virtual void run(Stream& stream, const kernel::Arguments& call) = 0;
  HEADRACE_KERNELS(HEADRACE_KERNEL)
#undef HEADRACE_KERNEL
};

// Declares a backend's body of a kernel: HEADRACE_KERNELS(HEADRACE_KERNEL_BODY) declares all.
#define HEADRACE_KERNEL_BODY(function, Arguments) void run(Stream& stream, const kernel::Arguments& call) override;

}  // namespace headrace
