#include "headrace/devices/common/kernel_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "headrace/devices/base/error.h"

namespace headrace::check {
namespace {

void ranked(const char* kernel, const char* name, const TensorView& view, int rank, Half half = Half::kRefused) {
  tensor(kernel, name, view, half);
  if (view.shape.rank() != rank) {
    refuse(kernel, fmt::format("{} has shape {}, it must have {} axes", name, view.shape.to_string(), rank));
  }
}

void vector_of(const char* kernel, const char* name, const TensorView& view, std::int64_t length) {
  ranked(kernel, name, view, 1);
  if (view.elements() != length) {
    refuse(kernel, fmt::format("{} has shape {}, it must have {} elements", name, view.shape.to_string(), length));
  }
}

void convolved(const char* kernel, const char* axis, std::int64_t in, std::int64_t padding, std::int64_t window,
               std::int64_t stride, std::int64_t out) {
  const std::int64_t room = in + padding - window;
  if (room < 0) refuse(kernel, fmt::format("a window of {} does not fit a {} of {}", window, axis, in + padding));
  if (room / stride + 1 != out) {
    refuse(kernel, fmt::format("the result's {} is {}, it must be {}", axis, out, room / stride + 1));
  }
}

void alike(const char* kernel, const TensorView& a, const TensorView& b) {
  if (a.dtype == b.dtype) return;
  refuse(kernel, fmt::format("all activations of a call must be of one type, not {} and {}", to_string(a.dtype),
                             to_string(b.dtype)));
}

void images(const char* kernel, const TensorView& x, const TensorView& y, Half half) {
  ranked(kernel, "x", x, 4, half);
  ranked(kernel, "y", y, 4, half);
  need(x.shape[0] == y.shape[0], kernel, "x and y must hold equally many images", x, y);
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;
  if (x.elements() / x.shape[0] >= kMaxElements) {
    refuse(kernel,
           fmt::format("an image of x has shape {}, it must have fewer than 2^31 elements", x.shape.to_string()));
  }
}

void at_least_1(const char* kernel, const char* name, const HeightWidth& numbers) {
  if (numbers.height >= 1 && numbers.width >= 1) return;
  refuse(kernel, fmt::format("the {} is {} by {}, it must be at least 1", name, numbers.height, numbers.width));
}

// The windows of weights (.., KH, KW, ..) over images x give images y.
void windows(const char* kernel, const TensorView& x, const TensorView& weights, const TensorView& y,
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

}  // namespace

void tensor(const char* kernel, const char* name, const TensorView& view, Half half) {
  if (!view.defined()) refuse(kernel, fmt::format("{} is undefined", name));
  const bool accepted = half == Half::kAccepted;
  if (view.dtype != DType::kF32 && !(accepted && view.dtype == DType::kBF16)) {
    refuse(kernel, fmt::format("{} is {}, it must be float32{}", name, to_string(view.dtype),
                               accepted ? " or bfloat16" : ""));
  }
  bool empty = view.shape.rank() == 0;
  for (const std::int64_t extent : view.shape.extents()) empty = empty || extent <= 0;
  if (empty) refuse(kernel, fmt::format("{} has the empty shape {}", name, view.shape.to_string()));
}

void dense(const char* kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
           const TensorView& y, Half half, Half weights_half) {
  ranked(kernel, "x", x, 2, half);
  ranked(kernel, "weights", weights, 2, weights_half);
  ranked(kernel, "y", y, 2, half);
  need(x.shape[1] == weights.shape[1], kernel, "x and weights must have equally many columns", x, weights);
  need(y.shape[1] == weights.shape[0], kernel, "y must have a column for each row of weights", y, weights);
  need(x.shape[0] == y.shape[0], kernel, "x and y must have equally many rows", x, y);
  if (bias.defined()) vector_of(kernel, "bias", bias, weights.shape[0]);
}

void batched_matmul(const char* kernel, const Kernels::Matrices& a, const Kernels::Matrices& b,
                    const Kernels::Matrices& result, Half half) {
  ranked(kernel, "a", a.tensor, 4, half);
  ranked(kernel, "b", b.tensor, 4, half);
  ranked(kernel, "the result", result.tensor, 4, half);
  if (result.transposed) refuse(kernel, "the result cannot be transposed; exchange and transpose the operands");
  const MatrixBatch of_a = matrix_batch(a), of_b = matrix_batch(b), of_result = matrix_batch(result);
  for (const auto* operand : {&of_a, &of_b}) {
    need(operand->outer == of_result.outer && operand->inner == of_result.inner, kernel,
         "operands and result must have equally many matrices", operand == &of_a ? a.tensor : b.tensor,
         result.tensor);
  }
  const auto rows = [](const Kernels::Matrices& of, const MatrixBatch& batch) {
    return of.transposed ? batch.columns : batch.rows;
  };
  const auto columns = [](const Kernels::Matrices& of, const MatrixBatch& batch) {
    return of.transposed ? batch.rows : batch.columns;
  };
  need(columns(a, of_a) == rows(b, of_b), kernel, "a's matrices must have as many columns as b's have rows",
       a.tensor, b.tensor);
  need(rows(a, of_a) == of_result.rows, kernel, "the result's matrices must have as many rows as a's", a.tensor,
       result.tensor);
  need(columns(b, of_b) == of_result.columns, kernel, "the result's matrices must have as many columns as b's",
       b.tensor, result.tensor);
}

void mask_scores(const char* kernel, const TensorView& scores, const TensorView& mask) {
  ranked(kernel, "scores", scores, 4);
  if (!mask.defined()) return;
  ranked(kernel, "the mask", mask, 2, Half::kAccepted);
  need(mask.shape[0] == scores.shape[0] && mask.shape[1] == scores.shape[3], kernel,
       "the mask must have a number for each example and each of its positions", mask, scores);
}

void convolution(const char* kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
                 const TensorView& y, const ConvOptions& options, Half half, Half weights_half) {
  images(kernel, x, y, half);
  ranked(kernel, "weights", weights, 4, weights_half);
  if (options.groups < 1)
    refuse(kernel, fmt::format("there are {} groups, there must be 1 or more", options.groups));
  need(x.shape[3] == weights.shape[3] * options.groups, kernel,
       "weights must have the channels that x has in each group", weights, x);
  need(y.shape[3] == weights.shape[0], kernel, "y must have a channel for each row of weights", y, weights);
  need(y.shape[3] % options.groups == 0, kernel, "each group must have equally many rows of weights", weights, y);
  windows(kernel, x, weights, y, options);
  if (bias.defined()) vector_of(kernel, "bias", bias, weights.shape[0]);
}

void depthwise(const char* kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
               const TensorView& y, const ConvOptions& options, Half half) {
  images(kernel, x, y, half);
  alike(kernel, x, y);
  ranked(kernel, "weights", weights, 4);
  need(weights.shape[3] == 1, kernel, "a filter must have one channel", weights, x);
  need(weights.shape[0] % x.shape[3] == 0, kernel, "each channel of x must have equally many filters", weights, x);
  need(y.shape[3] == weights.shape[0], kernel, "y must have a channel for each filter", y, weights);
  windows(kernel, x, weights, y, options);
  if (bias.defined()) vector_of(kernel, "bias", bias, weights.shape[0]);
}

void conv_bias(const char* kernel, const TensorView& x, const TensorView& weights, const TensorView& bias,
               const TensorView& dy, const TensorView& dbias, const ConvOptions& options, Half half,
               Half weights_half) {
  convolution(kernel, x, weights, bias, dy, options, half, weights_half);
  alike(kernel, x, dy);
  vector_of(kernel, "the bias's gradient", dbias, weights.shape[0]);
}

void recomputed(const char* kernel, const TensorView& weights, bool recomputes) {
  if (recomputes) return;
  throw ConfigError(
      fmt::format("{} of weights {}: this device has no kernel that computes the convolution again", kernel,
                  weights.shape.to_string()),
      "keep what the activation is applied to, and use activation_backward() and conv_backward_weights()");
}

void same(const char* kernel, const TensorView& view, const TensorView& like, Half half) {
  tensor(kernel, "an argument", view, half);
  need(view.shape == like.shape, kernel, "all tensors must have the same shape", view, like);
  alike(kernel, view, like);
}

void sum_tree(const char* kernel, std::span<const TensorView> parts, const TensorView& sum) {
  if (parts.empty() || parts.size() > Kernels::kMaxSummed) {
    throw ConfigError(fmt::format("{} of {} tensors: it sums 1 to {}", kernel, parts.size(), Kernels::kMaxSummed));
  }
  for (const TensorView& part : parts) same(kernel, part, sum);
}

void channels(const char* kernel, const TensorView& vector, const TensorView& x) {
  vector_of(kernel, "a coefficient vector", vector, x.shape.back());
}

namespace {

void pooled(const char* kernel, const TensorView& x, const TensorView& y, const PoolOptions& options, Half half) {
  images(kernel, x, y, half);
  alike(kernel, x, y);
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

void unpadded(const char* kernel, const PoolOptions& options) {
  if (options.pad != 0) refuse(kernel, "pads nothing; only max_pool_forward and max_pool_backward do");
}

}  // namespace

void max_pool(const char* kernel, const TensorView& x, const TensorView& y, const TensorView& argmax,
              const PoolOptions& options, Half half) {
  pooled(kernel, x, y, options, half);
  need(argmax.defined() && argmax.shape == y.shape, kernel, "argmax must have y's shape", argmax, y);
  if (argmax.dtype != DType::kU8) refuse(kernel, "argmax must be uint8");
}

void average_pool(const char* kernel, const TensorView& x, const TensorView& y, const PoolOptions& options,
                  Half half) {
  unpadded(kernel, options);
  pooled(kernel, x, y, options, half);
}

void columns(const char* kernel, const TensorView& from, std::int64_t from_column, const TensorView& to,
             std::int64_t to_column, std::int64_t columns, Half half) {
  ranked(kernel, "from", from, 2, half);
  ranked(kernel, "to", to, 2, half);
  alike(kernel, from, to);
  need(from.shape[0] == to.shape[0], kernel, "both must have equally many rows", from, to);
  const auto has = [columns](const TensorView& view, std::int64_t first) {
    return first >= 0 && columns >= 1 && first <= view.shape[1] - columns;
  };
  if (has(from, from_column) && has(to, to_column)) return;
  refuse(kernel, fmt::format("{} columns from {} of {} to {} of {}", columns, from_column, from.shape.to_string(),
                             to_column, to.shape.to_string()));
}

void numbers(const char* kernel, const char* name, const TensorView& view, std::int64_t elements) {
  tensor(kernel, name, view);
  if (view.elements() == elements) return;
  refuse(kernel, fmt::format("{} has {} elements, it must have {}", name, view.elements(), elements));
}

void statistics(const char* kernel, const TensorView& statistics, int replica, const Kernels::BatchNorm& norm) {
  ranked(kernel, "statistics", statistics, 2);
  const std::int64_t channels = norm.saved_mean.elements();
  for (const TensorView& view : {norm.saved_mean, norm.saved_inv_std, norm.running_mean, norm.running_var}) {
    numbers(kernel, "a statistic", view, channels);
  }
  if (statistics.shape[1] == 1 + 2 * channels && replica >= 0 && replica < statistics.shape[0]) return;
  refuse(kernel, fmt::format("statistics of shape {} for replica {} and {} channels", statistics.shape.to_string(),
                             replica, channels));
}

void global_pool(const char* kernel, const TensorView& x, const TensorView& y, Half half) {
  ranked(kernel, "x", x, 4, half);
  ranked(kernel, "y", y, 2, half);
  alike(kernel, x, y);
  need(x.shape[0] == y.shape[0] && x.shape[3] == y.shape[1], kernel, "y must be (images, channels) of x", x, y);
}

void scale(const char* kernel, const TensorView& x, const TensorView& y, Half half) {
  TensorView values = x;
  if (x.dtype == DType::kU8 || x.dtype == DType::kI64) values.dtype = DType::kF32;
  tensor(kernel, "x", values, half);
  tensor(kernel, "y", y, half);
  need(x.shape == y.shape, kernel, "x and y must have the same shape", x, y);
}

void convert(const char* kernel, const TensorView& from, const TensorView& to) {
  tensor(kernel, "from", from, Half::kAccepted);
  tensor(kernel, "to", to, Half::kAccepted);
  need(from.shape == to.shape, kernel, "both tensors must have the same shape", from, to);
}

void batch_norm(const char* kernel, const TensorView& x, const Kernels::BatchNorm& norm, Half half) {
  tensor(kernel, "x", x, half);
  if (norm.gamma.defined()) channels(kernel, norm.gamma, x);
  fused(kernel, norm.activation);
  channels(kernel, norm.beta, x);
  channels(kernel, norm.running_mean, x);
  channels(kernel, norm.running_var, x);
}

void batch_norm_training(const char* kernel, const TensorView& x, const Kernels::BatchNorm& norm, Half half) {
  batch_norm(kernel, x, norm, half);
  channels(kernel, norm.saved_mean, x);
  channels(kernel, norm.saved_inv_std, x);
}

void max_pool_batch_norm(const char* kernel, const TensorView& x, const Kernels::MaxPool& pool,
                         const TensorView& pooled, const Kernels::BatchNorm& norm, const TensorView& y,
                         Half half) {
  unpadded(kernel, pool.options);
  max_pool(kernel, x, pooled, pool.argmax, pool.options, half);
  batch_norm_training(kernel, pooled, norm, half);
  same(kernel, y, pooled, half);
}

void norm_gradients(const char* kernel, const TensorView& dgamma, const TensorView& dbeta, const TensorView& x) {
  for (const TensorView& view : {dgamma, dbeta}) {
    if (view.defined()) channels(kernel, view, x);
  }
}

void elementwise(const char* kernel, Activation activation) {
  if (activation == Activation::kSoftmax) refuse(kernel, "a softmax is not a function of single elements");
}

void fused(const char* kernel, Activation activation) {
  if (!is_fused(activation)) refuse(kernel, "the activation needs a pass of its own");
}

void add_bias(const char* kernel, const TensorView& bias, const TensorView& y, Activation activation, Half half) {
  fused(kernel, activation);
  tensor(kernel, "y", y, half);
  if (bias.defined()) channels(kernel, bias, y);
}

void layer_norm(const char* kernel, const TensorView& x, const Kernels::LayerNorm& norm) {
  ranked(kernel, "x", x, 2);
  for (const TensorView& view : {norm.gamma, norm.beta}) {
    if (view.defined()) channels(kernel, view, x);
  }
  for (const TensorView& view : {norm.saved_mean, norm.saved_inv_std}) {
    vector_of(kernel, "a saved statistic", view, x.shape[0]);
  }
}

void embedding(const char* kernel, const TensorView& ids, const TensorView& table, const TensorView& y) {
  ranked(kernel, "table", table, 2);
  ranked(kernel, "y", y, 2);
  vector_of(kernel, "ids", ids, y.shape[0]);
  need(table.shape[1] == y.shape[1], kernel, "the table and y must have equally many columns", table, y);
  constexpr std::int64_t kMaxEntries = std::int64_t{1} << 24;
  if (table.shape[0] <= kMaxEntries) return;
  refuse(kernel, fmt::format("the table has {} rows, it may have {}", table.shape[0], kMaxEntries));
}

void loss(const char* kernel, const TensorView& logits, const TensorView& labels) {
  ranked(kernel, "logits", logits, 2);
  if (!labels.defined() || labels.dtype != DType::kI64) refuse(kernel, "labels must be int64");
  need(labels.shape.rank() == 1 && labels.shape[0] == logits.shape[0], kernel, "there must be one label a row",
       labels, logits);
}

void classes(const char* kernel, const TensorView& x, const TensorView& labels) {
  if (labels.dtype != DType::kF32) return loss(kernel, x, labels);
  ranked(kernel, "x", x, 2);
  same(kernel, labels, x);
}

void soft_loss(const char* kernel, const TensorView& logits, const TensorView& targets,
               const TensorView& gradient) {
  ranked(kernel, "logits", logits, 2);
  same(kernel, targets, logits);
  if (gradient.defined()) same(kernel, gradient, logits);
}

void element_loss(const char* kernel, const TensorView& x, const TensorView& targets, const TensorView& gradient) {
  tensor(kernel, "x", x);
  if (!targets.defined() || (targets.dtype != DType::kF32 && targets.dtype != DType::kI64)) {
    refuse(kernel, "targets must be float32 or int64");
  }
  need(targets.shape.rank() > 0 && targets.shape[0] == x.shape[0] && targets.elements() == x.elements(), kernel,
       "there must be a target for each element", targets, x);
  if (gradient.defined()) same(kernel, gradient, x);
}

void cosine_loss(const char* kernel, const TensorView& x, const TensorView& targets, const TensorView& gradient) {
  same(kernel, targets, x);
  if (gradient.defined()) same(kernel, gradient, x);
  if (x.shape.rank() >= 2) return;
  refuse(kernel, fmt::format("x has shape {}, it must have rows of vectors", x.shape.to_string()));
}

void example_losses(const char* kernel, const TensorView& losses) {
  if (losses.defined() && losses.shape.rank() != 1) {
    refuse(kernel, fmt::format("losses of shape {}; one number an example is needed", losses.shape.to_string()));
  }
  tensor(kernel, "losses", losses);
}

void top(const char* kernel, int k) {
  if (k < 1) refuse(kernel, fmt::format("the {} largest are asked for, it must be at least 1", k));
}

void confusions(const char* kernel, const TensorView& x, const TensorView& counts) {
  if (!counts.defined() || counts.dtype != DType::kI64) refuse(kernel, "counts must be int64");
  const std::int64_t classes = x.shape.back();
  need(counts.shape == Shape{classes, classes}, kernel, "counts must be a square of x's classes", counts, x);
}

void weights(const char* kernel, const ExampleRows& rows, const TensorView& x) {
  if (rows.weights.defined()) vector_of(kernel, "the weights", rows.weights, x.shape[0]);
}

void scores(const char* kernel, const TensorView& x, const TensorView& labels, const ScoreBuckets& buckets,
            const TensorView& counts) {
  ranked(kernel, "x", x, 2);
  if (!labels.defined() || (labels.dtype != DType::kF32 && labels.dtype != DType::kI64)) {
    refuse(kernel, "labels must be float32 or int64");
  }
  const bool numbers = labels.dtype == DType::kI64 && labels.shape.rank() == 1;
  need(labels.shape.rank() > 0 && labels.shape[0] == x.shape[0] && (numbers || labels.elements() == x.elements()),
       kernel, "there must be a label for each element, or a class number for each row", labels, x);
  if (buckets.count < 2) refuse(kernel, fmt::format("{} buckets, there must be 2 or more", buckets.count));
  if (!counts.defined() || counts.dtype != DType::kI64) refuse(kernel, "counts must be int64");
  need(counts.shape == Shape{x.shape[1], buckets.count, 2}, kernel, "counts must be (columns, buckets, 2)", counts,
       x);
}

void example_weights(const char* kernel, const TensorView& labels, std::span<const float> by_class,
                     const TensorView& given, const TensorView& weights) {
  ranked(kernel, "weights", weights, 1);
  if (given.defined()) vector_of(kernel, "the given weights", given, weights.elements());
  if (by_class.empty()) refuse(kernel, "there is no class with a weight");
  if (!labels.defined() || (labels.dtype != DType::kF32 && labels.dtype != DType::kI64)) {
    refuse(kernel, "labels must be float32 or int64");
  }
  const bool number = labels.dtype == DType::kF32 || labels.elements() == weights.elements();
  need(number && labels.shape.rank() > 0 && labels.shape[0] == weights.shape[0], kernel,
       "there must be a label for each row", labels, weights);
}

void shift(const char* kernel, const TensorView& x, const ImageShift& shift, const TensorView& y, Half half) {
  images(kernel, x, y, half);
  same(kernel, y, x, half);
  if (std::abs(shift.down) >= x.shape[1] || std::abs(shift.right) >= x.shape[2]) {
    refuse(kernel, fmt::format("a shift by {} and {} pixels leaves images of shape {}", shift.down, shift.right,
                               x.shape.to_string()));
  }
}

void dropout(const char* kernel, float rate, int layer) {
  if (!(rate >= 0 && rate < 1)) refuse(kernel, fmt::format("the rate is {}, it must be in [0, 1)", rate));
  if (layer < 0 || layer > 0xFFFF) refuse(kernel, fmt::format("the layer number {} is not below 65536", layer));
}

}  // namespace headrace::check
