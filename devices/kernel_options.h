// The options of the kernels in kernels.h, and the values in device memory that they read and write.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/devices/base/api.h"
#include "headrace/devices/tensor.h"

namespace HEADRACE_API headrace {

// The functions that layers apply to a result, element by element but for kSoftmax, which is over the last axis
// and has kernels of its own.
enum class Activation {
  kNone,
  kRelu,
  kGelu,  // the exact one, x * Phi(x)
  kSilu,
  // From here on products and norms do not apply them in their own pass (is_fused()).
  kSigmoid,
  kTanh,
  kLeakyRelu,  // x or, below 0, kLeakySlope x
  kElu,        // x or, below 0, e^x - 1
  kSoftplus,   // log(1 + e^x)
  kSoftmax,
};
constexpr float kLeakySlope = 0.2F;  // Keras's default

// Returns whether dense layers, convolutions and batch normalisation can apply the activation to their result.
constexpr bool is_fused(Activation activation) noexcept { return activation <= Activation::kSilu; }
// Returns whether the activation's slope is computed from its result instead of its input.
constexpr bool slope_from_result(Activation activation) noexcept { return !is_fused(activation); }

// f32 everywhere, or products in bf16 with f32 sums (inputs rounded to the nearest, ties to even).
// Bias gradients may be sums of the rounded or of the given values.
enum class Precision { kF32, kBF16 };

// A number for each axis of an image: one for both, or {height, width}.
struct HeightWidth {
  constexpr HeightWidth(int both) : height(both), width(both) {}
  constexpr HeightWidth(int of_height, int of_width) : height(of_height), width(of_width) {}

  bool operator==(const HeightWidth&) const = default;

  int height, width;
};

struct ConvOptions {
  HeightWidth stride = 1;
  HeightWidth dilation = 1;  // pixels from one of a window's taps to the next
  int pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int groups = 1;  // of channels, each convolved by itself
  Precision precision = Precision::kF32;
};

struct PoolOptions {
  int window = 2;
  int stride = 2;
  // Pixels beyond each side that windows may cover, at most half a window; they are never the maximum. Max pooling
  // only, and not together with a batch normalisation.
  int pad = 0;
};

constexpr int kMaxParameterGroups = 64;  // groups of parameters, each with its own learning rate

// Values that change from step to step, in device memory; written before each launch of a captured step.
struct StepScalars {
  std::int64_t rows = 0;  // real examples in this replica's batch
  // The weight of an example's loss in the gradient: 1 / real examples over all replicas for a mean, 0 for an
  // empty global batch; 1 for a sum.
  float inverse_global_rows = 0;
  float learning_rates[kMaxParameterGroups] = {};  // by parameter group
  // By parameter group: 1 / (1 - beta1^t) and 1 / (1 - beta2^t) if Adam updates it; else as its rule requires.
  float corrections[kMaxParameterGroups][2] = {};
  std::uint64_t step = 0;        // global step, keys dropout
  std::uint64_t first_row = 0;   // this replica's first row within the global batch, keys dropout
  std::uint64_t kept_norms = 0;  // bit g: in this step Muon does not scale the norms of group g's weights
  float average_decay = 0;       // of average(), in this step
  float slow_share = 0;          // of look_ahead(), in this step
  // Not 0: a collective that the step needed, or other work of its stream, failed. Then adam(), sgd(), muon(),
  // average() and look_ahead() change nothing. Copies of Collective::failure_word() and Stream::failure_word().
  std::uint32_t collective_failed = 0, work_failed = 0;

  constexpr bool failed() const noexcept { return (collective_failed | work_failed) != 0; }
};
static_assert(kMaxParameterGroups <= 64, "kept_norms has a bit a group");

// Exact sums over examples, in device memory. Losses are summed in double, in an order that never changes.
struct MetricSums {
  double loss = 0;
  std::int64_t correct = 0;
  std::int64_t examples = 0;
};

// The loss that an element x adds to its example's, given its target t: (x - t)^2; |x - t|, whose slope at 0 is 0;
// -t log p - (1 - t) log(1 - p) with p = 1 / (1 + e^-x) or, from probabilities, p = x within [1e-7, 1 - 1e-7];
// Huber's, (x - t)^2 / 2 within 1 of t and |x - t| - 1/2 beyond; the hinge max(0, 1 - s x), s being -1 for t <= 0
// and otherwise 1; t log(t / x), both within [1e-7, 1]; 1 for a match, without a slope: whether x is above 0 or,
// as a probability, above 0.5, equals whether t is at least 0.5. NaN matches nothing.
enum class ElementLoss {
  kSquaredError,
  kAbsoluteError,
  kBinaryFromLogits,
  kBinaryFromProbabilities,
  kHuber,
  kHinge,
  kKullbackLeibler,
  kMatchesOfLogits,
  kMatchesOfProbabilities,
};

// Returns whether an example's loss is the sum over its elements instead of their mean.
constexpr bool sums_elements(ElementLoss loss) noexcept { return loss >= ElementLoss::kKullbackLeibler; }

// The rows that a loss or a count is about: how many are real, and what each of them weighs. A weight is a factor
// of the row's loss and gradient; the examples and the correct ones are counted without it.
struct ExampleRows {
  ExampleRows(const StepScalars* of_step, const TensorView& by_row = {}) : scalars(of_step), weights(by_row) {}

  const StepScalars* scalars = nullptr;
  TensorView weights;  // f32 (M); undefined: each weighs 1
};

// How count_scores() sorts a score p: two buckets, of those up to the threshold and those above; or, for another
// number, bucket ceil(p (count - 1)) - 1 of [0, count).
struct ScoreBuckets {
  std::int64_t count = 2;
  float threshold = 0.5F;
  bool sigmoid = false;  // p = 1 / (1 + e^-x) instead of x
};

// With g the gradient: m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
// w -= lr weight_decay w + lr (m c1) / (sqrt(v c2) + epsilon), c1 and c2 being the group's corrections.
struct AdamOptions {
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-7F;
  float weight_decay = 0;  // decoupled (AdamW); 0 is plain Adam
  int group = 0;           // whose learning rate and corrections

  bool operator==(const AdamOptions&) const = default;
};

// v = momentum v + g, w -= lr v; with Nesterov w -= lr (g + momentum v). Without momentum there is no v.
struct SgdOptions {
  float momentum = 0;
  float weight_decay = 0;  // added to the gradient, as Keras and PyTorch do
  bool nesterov = false;
  int group = 0;  // whose learning rate

  bool operator==(const SgdOptions&) const = default;
};

// Elements [begin, end) of an optimizer's arenas, and their update rule.
template <typename Options>
struct UpdateRange {
  std::int64_t begin = 0, end = 0;
  Options options = {};
};

// The tensors that an optimizer updates: f32 values, and their bf16 copy for products if one is kept. The copy has
// the shape of the values; each value that an update writes is also written there, rounded to the nearest.
struct Parameters {
  Parameters(const TensorView& in_f32, const TensorView& in_bf16 = {}) : values(in_f32), rounded(in_bf16) {}

  TensorView values;
  TensorView rounded;  // undefined: no copy
};

// One weight matrix (O, K) of f32, seen as such whatever its rank: rows = first extent.
struct MuonMatrix {
  TensorView parameters, gradients, velocity;
  TensorView rounded = {};  // as Parameters::rounded
};

// The number of updates between two in which Muon scales the norms of its weights: `first` initially, up to
// `growth` more as the run nears `over_steps` updates. Read by the writer of StepScalars::kept_norms, not by
// kernels.
struct NormInterval {
  int first = 1, growth = 0;
  std::uint64_t over_steps = 1;

  bool operator==(const NormInterval&) const = default;
};

// What an (O, K) matrix's learning rate is multiplied by: sqrt(max(1, O / K)), as Muon's author does;
// 0.2 sqrt(max(O, K)), which makes the update as large as AdamW's; sqrt(O / K); or 1.
enum class MuonRate { kOriginal, kMatchRmsAdamw, kSpectralUnclamped, kNone };
float muon_rate_factor(MuonRate rate, std::int64_t outputs, std::int64_t inputs) noexcept;

// v = momentum v + g; u = g + momentum v with Nesterov, else v; X = u / (|u| + epsilon) as (O, K);
// iterations times { A = X X'; X = a X + (b A + c A A) X }, in bf16 products with f32 sums if the device has them;
// w -= lr weight_decay w + factor lr X, the factor being that of adjust_rate. If O > K, works on the transpose of
// X. The defaults are torch.optim.Muon's. With normalize, w is first scaled to Frobenius norm sqrt(O), whatever
// the learning rate, unless the step keeps its norm.
struct MuonOptions {
  float momentum = 0.95F;
  bool nesterov = true;
  float epsilon = 1e-7F;
  float a = 3.4445F, b = -4.7750F, c = 2.0315F;
  int iterations = 5;
  float weight_decay = 0.1F;  // decoupled
  MuonRate adjust_rate = MuonRate::kOriginal;
  bool normalize = false;
  NormInterval norm_interval = {};  // if it normalizes
  int group = 0;                    // whose learning rate

  bool operator==(const MuonOptions&) const = default;
};

// The state of clipping gradients by their norm, in device memory, within a step.
struct GradientNorm {
  double squares = 0;  // their sum so far
  float factor = 1;    // by which the gradients are multiplied
};

// A view of an image: shifted by whole pixels, then perhaps mirrored left to right.
struct ImageShift {
  int down = 0, right = 0;
  bool mirror = false;
};

// A scalar factor: a number, or one in device memory that is read when the work runs.
struct Factor {
  Factor(float number) : value(number) {}
  Factor(const float* in_device_memory) : stored(in_device_memory) {}

  float value = 1;
  const float* stored = nullptr;  // null: `value` counts
};

// Arguments that several kernels share.
namespace kernel {

// The matrices (R, C) of a tensor (N, H, R, C) or, if interleaved, (N, R, H, C), as the heads of attention lie in
// rows of features.
struct Matrices {
  TensorView tensor;
  bool interleaved = false;
  bool transposed = false;  // each matrix stands for its transpose, as an operand
};

struct MaxPool {
  PoolOptions options;
  TensorView argmax;  // from forward to backward
};

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

struct LayerNorm {
  TensorView gamma, beta;                // (C); each may be undefined: 1 and 0
  TensorView saved_mean, saved_inv_std;  // (M), from forward to backward
  float epsilon = 1e-3F;
};

constexpr float kMaskedScore = -1e30F;   // of a score that mask_scores() leaves out
constexpr std::size_t kMaxSummed = 64;   // parts of sum_tree()
constexpr float kMaxInverseNorm = 1e7F;  // of a vector of cosine_loss(), as Keras does

}  // namespace kernel

}  // namespace headrace
