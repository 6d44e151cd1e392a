// What each kernel refuses, and the functions of Kernels, which ask before a backend gets the of.
#include "headrace/devices/common/kernel_checks.h"

#include <cstdlib>

#include "headrace/devices/common/kernel_rules.h"

namespace headrace::kernel {
namespace {

void elementwise(Name kernel, Activation activation) {
  if (activation == Activation::kSoftmax) refuse(kernel, "a softmax is not a function of single elements");
}

void convolved(Name kernel, const char* axis, std::int64_t in, std::int64_t padding, std::int64_t window,
               std::int64_t stride, std::int64_t out) {
  const std::int64_t room = in + padding - window;
  if (room < 0) refuse(kernel, fmt::format("a window of {} does not fit a {} of {}", window, axis, in + padding));
  if (room / stride + 1 == out) return;
  refuse(kernel, fmt::format("the result's {} is {}, it must be {}", axis, out, room / stride + 1));
}

void images(Name kernel, const TensorView& x, const TensorView& y) {
  ranked(kernel, "x", x, 4, Half::kAccepted);
  ranked(kernel, "y", y, 4, Half::kAccepted);
  need(x.shape[0] == y.shape[0], kernel, "x and y must hold equally many images", x, y);
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;
  if (x.elements() / x.shape[0] < kMaxElements) return;
  refuse(kernel,
         fmt::format("an image of x has shape {}, it must have fewer than 2^31 elements", x.shape.to_string()));
}

void at_least_1(Name kernel, const char* name, const HeightWidth& numbers) {
  if (numbers.height >= 1 && numbers.width >= 1) return;
  refuse(kernel, fmt::format("the {} is {} by {}, it must be at least 1", name, numbers.height, numbers.width));
}

// The windows of weights (.., KH, KW, ..) over images x give images y.
void windows(Name kernel, const TensorView& x, const TensorView& weights, const TensorView& y,
             const ConvOptions& options) {
  at_least_1(kernel, "stride", options.stride);
  at_least_1(kernel, "dilation", options.dilation);
  if (options.pad_top < 0 || options.pad_left < 0 || options.pad_bottom < 0 || options.pad_right < 0) {
    refuse(kernel, "padding must not be negative");
  }
  const auto span = [](std::int64_t taps, int dilation) { return (taps - 1) * dilation + 1; };
  convolved(kernel, "height", x.shape[1], options.pad_top + options.pad_bottom,
            span(weights.shape[1], options.dilation.height), options.stride.height, y.shape[1]);
  convolved(kernel, "width", x.shape[2], options.pad_left + options.pad_right,
            span(weights.shape[2], options.dilation.width), options.stride.width, y.shape[2]);
}

// For these and the following, also the gradients in the place of what they are gradients of.
void dense(Name kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
           const TensorView& y, Half weights_half = Half::kRefused) {
  ranked(kernel, "x", x, 2, Half::kAccepted);
  ranked(kernel, "weights", weights, 2, weights_half);
  ranked(kernel, "y", y, 2, Half::kAccepted);
  need(x.shape[1] == weights.shape[1], kernel, "x and weights must have equally many columns", x, weights);
  need(y.shape[1] == weights.shape[0], kernel, "y must have a column for each row of weights", y, weights);
  need(x.shape[0] == y.shape[0], kernel, "x and y must have equally many rows", x, y);
  if (bias.defined()) vector_of(kernel, "bias", bias, weights.shape[0]);
}

void convolution(Name kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
                 const TensorView& y, const ConvOptions& options, Half weights_half) {
  images(kernel, x, y);
  ranked(kernel, "weights", weights, 4, weights_half);
  if (options.groups < 1) {
    refuse(kernel, fmt::format("there are {} groups, there must be 1 or more", options.groups));
  }
  need(x.shape[3] == weights.shape[3] * options.groups, kernel,
       "weights must have the channels that x has in each group", weights, x);
  need(y.shape[3] == weights.shape[0], kernel, "y must have a channel for each row of weights", y, weights);
  need(y.shape[3] % options.groups == 0, kernel, "each group must have equally many rows of weights", weights, y);
  windows(kernel, x, weights, y, options);
  if (bias.defined()) vector_of(kernel, "bias", bias, weights.shape[0]);
}

void depthwise(Name kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
               const TensorView& y, const ConvOptions& options) {
  images(kernel, x, y);
  of_one_type(kernel, x, y);
  ranked(kernel, "weights", weights, 4);
  need(weights.shape[3] == 1, kernel, "a filter must have one channel", weights, x);
  need(weights.shape[0] % x.shape[3] == 0, kernel, "each channel of x must have equally many filters", weights, x);
  need(y.shape[3] == weights.shape[0], kernel, "y must have a channel for each filter", y, weights);
  windows(kernel, x, weights, y, options);
  if (bias.defined()) vector_of(kernel, "bias", bias, weights.shape[0]);
}

// A bias's gradient without that of the weights.
void bias_gradient(Name kernel, const TensorView& dy, const TensorView& dbias) {
  if (!dbias.defined()) return;
  same(kernel, dy, dy, Half::kAccepted);
  channels(kernel, dbias, dy);
}

void pooled(Name kernel, const TensorView& x, const TensorView& y, const PoolOptions& options) {
  images(kernel, x, y);
  of_one_type(kernel, x, y);
  need(x.shape[3] == y.shape[3], kernel, "x and y must have equally many channels", x, y);
  if (options.window < 1 || options.window > 16 || options.stride < 1) {
    refuse(kernel, fmt::format("the window is {} and the stride {}; windows go from 1 to 16, strides from 1",
                               options.window, options.stride));
  }
  if (options.pad < 0 || options.pad > options.window / 2) {
    refuse(kernel, fmt::format("a window of {} is padded by {}; paddings go from 0 to half a window",
                               options.window, options.pad));
  }
  convolved(kernel, "height", x.shape[1], 2 * options.pad, options.window, options.stride, y.shape[1]);
  convolved(kernel, "width", x.shape[2], 2 * options.pad, options.window, options.stride, y.shape[2]);
}

void unpadded(Name kernel, const PoolOptions& options) {
  if (options.pad != 0) refuse(kernel, "pads nothing; only max_pool_forward and max_pool_backward do");
}

void max_pool(Name kernel, const TensorView& x, const TensorView& y, const TensorView& argmax,
              const PoolOptions& options) {
  pooled(kernel, x, y, options);
  need(argmax.defined() && argmax.shape == y.shape, kernel, "argmax must have y's shape", argmax, y);
  if (argmax.dtype != DType::kU8) refuse(kernel, "argmax must be uint8");
}

void average_pool(Name kernel, const TensorView& x, const TensorView& y, const PoolOptions& options) {
  unpadded(kernel, options);
  pooled(kernel, x, y, options);
}

void global_pool(Name kernel, const TensorView& x, const TensorView& y) {
  ranked(kernel, "x", x, 4, Half::kAccepted);
  ranked(kernel, "y", y, 2, Half::kAccepted);
  of_one_type(kernel, x, y);
  need(x.shape[0] == y.shape[0] && x.shape[3] == y.shape[1], kernel, "y must be (images, channels) of x", x, y);
}

void batch_norm(Name kernel, const TensorView& x, const BatchNorm& norm) {
  tensor(kernel, "x", x, Half::kAccepted);
  if (norm.gamma.defined()) channels(kernel, norm.gamma, x);
  fused(kernel, norm.activation);
  for (const TensorView& view : {norm.beta, norm.running_mean, norm.running_var}) channels(kernel, view, x);
}

void batch_norm_training(Name kernel, const TensorView& x, const BatchNorm& norm) {
  batch_norm(kernel, x, norm);
  for (const TensorView& view : {norm.saved_mean, norm.saved_inv_std}) channels(kernel, view, x);
}

void max_pool_batch_norm(Name kernel, const TensorView& x, const MaxPool& pool, const TensorView& pooled,
                         const BatchNorm& norm, const TensorView& y) {
  unpadded(kernel, pool.options);
  max_pool(kernel, x, pooled, pool.argmax, pool.options);
  batch_norm_training(kernel, pooled, norm);
  same(kernel, y, pooled, Half::kAccepted);
}

void layer_norm(Name kernel, const TensorView& x, const LayerNorm& norm) {
  ranked(kernel, "x", x, 2);
  channels_if_defined(kernel, {norm.gamma, norm.beta}, x);
  for (const TensorView& view : {norm.saved_mean, norm.saved_inv_std}) {
    vector_of(kernel, "a saved statistic", view, x.shape[0]);
  }
}

// V is at most 2^24, up to which f32 has all whole numbers.
void embedding(Name kernel, const TensorView& ids, const TensorView& table, const TensorView& y) {
  ranked(kernel, "table", table, 2);
  ranked(kernel, "y", y, 2);
  vector_of(kernel, "ids", ids, y.shape[0]);
  need(table.shape[1] == y.shape[1], kernel, "the table and y must have equally many columns", table, y);
  constexpr std::int64_t kMaxEntries = std::int64_t{1} << 24;
  if (table.shape[0] <= kMaxEntries) return;
  refuse(kernel, fmt::format("the table has {} rows, it may have {}", table.shape[0], kMaxEntries));
}

}  // namespace

void check(Name kernel, const Convert& of) {
  tensor(kernel, "from", of.from, Half::kAccepted);
  tensor(kernel, "to", of.to, Half::kAccepted);
  need(of.from.shape == of.to.shape, kernel, "both tensors must have the same shape", of.from, of.to);
}

void check(Name kernel, const DenseForward& of) {
  fused(kernel, of.activation);
  dense(kernel, of.x, of.weights, of.bias, of.y, half_weights(of.precision));
}

void check(Name kernel, const DenseBackwardData& of) {
  dense(kernel, of.dx, of.weights, {}, of.dy, half_weights(of.precision));
}

void check(Name kernel, const DenseBackwardWeights& of) { dense(kernel, of.x, of.dweights, of.dbias, of.dy); }

void check(Name kernel, const BatchedMatmul& of) {
  const auto& [a, b, result, alpha, precision] = of;
  ranked(kernel, "a", a.tensor, 4, Half::kAccepted);
  ranked(kernel, "b", b.tensor, 4, Half::kAccepted);
  ranked(kernel, "the result", result.tensor, 4, Half::kAccepted);
  if (result.transposed) refuse(kernel, "the result cannot be transposed; exchange and transpose the operands");
  const MatrixBatch of_a = matrix_batch(a), of_b = matrix_batch(b), of_result = matrix_batch(result);
  for (const auto* operand : {&of_a, &of_b}) {
    need(operand->outer == of_result.outer && operand->inner == of_result.inner, kernel,
         "operands and result must have equally many matrices", operand == &of_a ? a.tensor : b.tensor,
         result.tensor);
  }
  const auto rows = [](const Matrices& side, const MatrixBatch& batch) {
    return side.transposed ? batch.columns : batch.rows;
  };
  const auto columns = [](const Matrices& side, const MatrixBatch& batch) {
    return side.transposed ? batch.rows : batch.columns;
  };
  need(columns(a, of_a) == rows(b, of_b), kernel, "a's matrices must have as many columns as b's have rows",
       a.tensor, b.tensor);
  need(rows(a, of_a) == of_result.rows, kernel, "the result's matrices must have as many rows as a's", a.tensor,
       result.tensor);
  need(columns(b, of_b) == of_result.columns, kernel, "the result's matrices must have as many columns as b's",
       b.tensor, result.tensor);
}

void check(Name kernel, const MaskScores& of) {
  ranked(kernel, "scores", of.scores, 4);
  if (!of.mask.defined()) return;
  ranked(kernel, "the mask", of.mask, 2, Half::kAccepted);
  need(of.mask.shape[0] == of.scores.shape[0] && of.mask.shape[1] == of.scores.shape[3], kernel,
       "the mask must have a number for each example and each of its positions", of.mask, of.scores);
}

void check(Name kernel, const ConvForward& of) {
  fused(kernel, of.activation);
  convolution(kernel, of.x, of.weights, of.bias, of.y, of.options, half_weights(of.options.precision));
}

void check(Name kernel, const ConvBackwardData& of) {
  convolution(kernel, of.dx, of.weights, {}, of.dy, of.options, half_weights(of.options.precision));
}

void check(Name kernel, const ConvBackwardWeights& of) {
  if (!of.dweights.defined()) return bias_gradient(kernel, of.dy, of.dbias);
  convolution(kernel, of.x, of.dweights, of.dbias, of.dy, of.options, Half::kRefused);
}

void check(Name kernel, const ConvBiasBackward& of) {
  convolution(kernel, of.x, of.weights, of.bias, of.dy, of.options, half_weights(of.options.precision));
  of_one_type(kernel, of.x, of.dy);
  vector_of(kernel, "the bias's gradient", of.dbias, of.weights.shape[0]);
}

void check_recomputed(const ConvBiasBackward& of, bool recomputes) {
  if (recomputes) return;
  throw ConfigError(
      fmt::format("{} of weights {}: this device has no kernel that computes the convolution again", name_of(of),
                  of.weights.shape.to_string()),
      "keep what the activation is applied to, and use activation_backward() and conv_backward_weights()");
}

void check(Name kernel, const DepthwiseForward& of) {
  fused(kernel, of.activation);
  depthwise(kernel, of.x, of.weights, of.bias, of.y, of.options);
}

void check(Name kernel, const DepthwiseBackwardData& of) {
  depthwise(kernel, of.dx, of.weights, {}, of.dy, of.options);
}

void check(Name kernel, const DepthwiseBackwardWeights& of) {
  if (!of.dweights.defined()) return bias_gradient(kernel, of.dy, of.dbias);
  depthwise(kernel, of.x, of.dweights, of.dbias, of.dy, of.options);
}

void check(Name kernel, const AddBias& of) {
  fused(kernel, of.activation);
  tensor(kernel, "y", of.y, Half::kAccepted);
  channels_if_defined(kernel, {of.bias}, of.y);
}

void check(Name kernel, const ActivationForward& of) {
  elementwise(kernel, of.activation);
  alike(kernel, {of.x, of.y}, Half::kAccepted);
}

void check(Name kernel, const ActivationBackward& of) {
  elementwise(kernel, of.activation);
  alike(kernel, {of.x, of.dy, of.dx}, Half::kAccepted);
}

void check(Name kernel, const Add& of) { alike(kernel, {of.a, of.b, of.sum}, Half::kAccepted); }
void check(Name kernel, const Accumulate& of) { alike(kernel, {of.x, of.into}, Half::kAccepted); }

void check(Name kernel, const SumTree& of) {
  if (of.parts.empty() || of.parts.size() > kMaxSummed) {
    throw ConfigError(fmt::format("{} of {} tensors: it sums 1 to {}", kernel, of.parts.size(), kMaxSummed));
  }
  for (const TensorView& part : of.parts) same(kernel, part, of.sum);
}

void check(Name kernel, const Scale& of) {
  TensorView values = of.x;
  if (of.x.dtype == DType::kU8 || of.x.dtype == DType::kI64) values.dtype = DType::kF32;
  tensor(kernel, "x", values, Half::kAccepted);
  tensor(kernel, "y", of.y, Half::kAccepted);
  need(of.x.shape == of.y.shape, kernel, "x and y must have the same shape", of.x, of.y);
}

void check(Name kernel, const Dropout& of) {
  if (!(of.rate >= 0 && of.rate < 1)) {
    refuse(kernel, fmt::format("the rate is {}, it must be in [0, 1)", of.rate));
  }
  if (of.layer < 0 || of.layer > 0xFFFF) {
    refuse(kernel, fmt::format("the layer number {} is not below 65536", of.layer));
  }
  alike(kernel, {of.x, of.y}, Half::kAccepted);
}

void check(Name kernel, const CopyColumns& of) {
  const auto& [from, to, from_column, to_column, columns] = of;
  ranked(kernel, "from", from, 2, Half::kAccepted);
  ranked(kernel, "to", to, 2, Half::kAccepted);
  of_one_type(kernel, from, to);
  need(from.shape[0] == to.shape[0], kernel, "both must have equally many rows", from, to);
  const auto has = [](const TensorView& view, std::int64_t first, std::int64_t count) {
    return first >= 0 && count >= 1 && first <= view.shape[1] - count;
  };
  if (has(from, from_column, columns) && has(to, to_column, columns)) return;
  refuse(kernel, fmt::format("{} columns from {} of {} to {} of {}", columns, from_column, from.shape.to_string(),
                             to_column, to.shape.to_string()));
}

void check(Name kernel, const ShiftImages& of) {
  const auto& [x, y, shift] = of;
  images(kernel, x, y);
  same(kernel, y, x, Half::kAccepted);
  if (std::abs(shift.down) < x.shape[1] && std::abs(shift.right) < x.shape[2]) return;
  refuse(kernel, fmt::format("a shift by {} and {} pixels leaves images of shape {}", shift.down, shift.right,
                             x.shape.to_string()));
}

void check(Name kernel, const MaxPoolForward& of) { max_pool(kernel, of.x, of.y, of.argmax, of.options); }
void check(Name kernel, const MaxPoolBackward& of) { max_pool(kernel, of.dx, of.dy, of.argmax, of.options); }
void check(Name kernel, const AveragePoolForward& of) { average_pool(kernel, of.x, of.y, of.options); }
void check(Name kernel, const AveragePoolBackward& of) { average_pool(kernel, of.dx, of.dy, of.options); }
void check(Name kernel, const GlobalAveragePoolForward& of) { global_pool(kernel, of.x, of.y); }
void check(Name kernel, const GlobalAveragePoolBackward& of) { global_pool(kernel, of.dx, of.dy); }

void check(Name kernel, const BatchNormTrain& of) {
  batch_norm_training(kernel, of.x, of.norm);
  same(kernel, of.y, of.x, Half::kAccepted);
}

void check(Name kernel, const BatchNormInfer& of) {
  batch_norm(kernel, of.x, of.norm);
  same(kernel, of.y, of.x, Half::kAccepted);
}

void check(Name kernel, const BatchNormBackward& of) {
  batch_norm_training(kernel, of.x, of.norm);
  alike(kernel, {of.x, of.dy, of.dx}, Half::kAccepted);
  channels_if_defined(kernel, {of.dgamma, of.dbeta}, of.x);
}

void check(Name kernel, const PackStatistics& of) {
  batch_norm_training(kernel, of.x, of.norm);
  numbers(kernel, "row", of.row, 1 + 2 * of.x.shape.back());
}

void check(Name kernel, const JoinStatistics& of) {
  const auto& [statistics, variance, inverse_counts, norm, replica] = of;
  ranked(kernel, "statistics", statistics, 2);
  const std::int64_t channels = norm.saved_mean.elements();
  for (const TensorView& view : {norm.saved_mean, norm.saved_inv_std, norm.running_mean, norm.running_var}) {
    numbers(kernel, "a statistic", view, channels);
  }
  if (statistics.shape[1] != 1 + 2 * channels || replica < 0 || replica >= statistics.shape[0]) {
    refuse(kernel, fmt::format("statistics of shape {} for replica {} and {} channels",
                               statistics.shape.to_string(), replica, channels));
  }
  numbers(kernel, "variance", variance, channels);
  numbers(kernel, "inverse_counts", inverse_counts, 2);
}

void check(Name kernel, const JoinInputGradient& of) {
  batch_norm_training(kernel, of.x, of.norm);
  same(kernel, of.dx, of.x, Half::kAccepted);
  for (const TensorView& sums : {of.own, of.joint}) numbers(kernel, "sums", sums, 2 * of.x.shape.back());
  numbers(kernel, "inverse_counts", of.inverse_counts, 2);
}

void check(Name kernel, const LayerNormForward& of) {
  layer_norm(kernel, of.x, of.norm);
  same(kernel, of.y, of.x);
}

void check(Name kernel, const LayerNormBackward& of) {
  layer_norm(kernel, of.x, of.norm);
  same(kernel, of.dy, of.x);
  if (of.dx.defined()) same(kernel, of.dx, of.x);
  channels_if_defined(kernel, {of.dgamma, of.dbeta}, of.x);
}

void check(Name kernel, const Embed& of) { embedding(kernel, of.ids, of.table, of.y); }
void check(Name kernel, const EmbedBackward& of) { embedding(kernel, of.ids, of.dtable, of.dy); }

void check(Name kernel, const MaxPoolBatchNormTrain& of) {
  max_pool_batch_norm(kernel, of.x, of.pool, of.pooled, of.norm, of.y);
}

void check(Name kernel, const MaxPoolBatchNormBackward& of) {
  max_pool_batch_norm(kernel, of.dx, of.pool, of.pooled, of.norm, of.dy);
  channels_if_defined(kernel, {of.dgamma, of.dbeta}, of.pooled);
}

}  // namespace headrace::kernel

namespace headrace {

#define HEADRACE_KERNEL(function, Arguments)                              \
  void Kernels::function(Stream& stream, const kernel::Arguments& call) { \
    kernel::check(#function, call);                                       \
    run(stream, call);                                                    \
  }
HEADRACE_KERNELS(HEADRACE_KERNEL)
#undef HEADRACE_KERNEL

}  // namespace headrace
