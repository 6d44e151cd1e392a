// What losses, counts and updates of parameters refuse.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/common/kernel_rules.h"

namespace headrace {

float muon_rate_factor(MuonRate rate, std::int64_t outputs, std::int64_t inputs) noexcept {
  const auto o = static_cast<double>(outputs), k = static_cast<double>(inputs);
  switch (rate) {
    case MuonRate::kOriginal: return static_cast<float>(std::sqrt(std::max(1.0, o / k)));
    case MuonRate::kMatchRmsAdamw: return static_cast<float>(0.2 * std::sqrt(std::max(o, k)));
    case MuonRate::kSpectralUnclamped: return static_cast<float>(std::sqrt(o / k));
    case MuonRate::kNone: break;
  }
  return 1;
}

}  // namespace headrace

namespace headrace::kernel {
namespace {

// `labels` are f32 or i64.
void numbers_or_classes(Name kernel, const char* name, const TensorView& labels) {
  if (labels.defined() && (labels.dtype == DType::kF32 || labels.dtype == DType::kI64)) return;
  refuse(kernel, fmt::format("{} must be float32 or int64", name));
}

// `counts` are i64.
void counters(Name kernel, const TensorView& counts) {
  if (!counts.defined() || counts.dtype != DType::kI64) refuse(kernel, "counts must be int64");
}

// The weights, if there are any, are one f32 for each row of x.
void weights(Name kernel, const ExampleRows& rows, const TensorView& x) {
  if (rows.weights.defined()) vector_of(kernel, "the weights", rows.weights, x.shape[0]);
}

void labelled(Name kernel, const TensorView& logits, const TensorView& labels) {
  ranked(kernel, "logits", logits, 2);
  if (!labels.defined() || labels.dtype != DType::kI64) refuse(kernel, "labels must be int64");
  need(labels.shape.rank() == 1 && labels.shape[0] == logits.shape[0], kernel, "there must be one label a row",
       labels, logits);
}

void classes(Name kernel, const TensorView& x, const TensorView& labels) {
  if (labels.dtype != DType::kF32) return labelled(kernel, x, labels);
  ranked(kernel, "x", x, 2);
  same(kernel, labels, x);
}

void group(Name kernel, int group) {
  if (group >= 0 && group < kMaxParameterGroups) return;
  refuse(kernel, fmt::format("parameter group {} does not exist, there are {}", group, kMaxParameterGroups));
}

// f32; a copy, if there is one, bf16 of their shape.
void updated(Name kernel, const Parameters& parameters) {
  const auto& [values, rounded] = parameters;
  same(kernel, values, values);
  if (!rounded.defined()) return;
  need(rounded.shape == values.shape, kernel, "the copy of parameters must have their shape", rounded, values);
  if (rounded.dtype == DType::kBF16) return;
  refuse(kernel, fmt::format("the copy of parameters is {}, it must be bfloat16", to_string(rounded.dtype)));
}

// The ranges are ascending and within the arena, each of an existing parameter group.
template <typename Options>
void within(Name kernel, std::span<const UpdateRange<Options>> ranges, const TensorView& arena) {
  std::int64_t before = 0;
  for (const auto& [begin, end, options] : ranges) {
    group(kernel, options.group);
    if (!std::ranges::is_sorted(std::array{before, begin, end, arena.elements()})) {
      refuse(kernel, fmt::format("range [{}, {}) after {} of {} elements", begin, end, before, arena.elements()));
    }
    before = end;
  }
}

// Of a norm or an element: a finite number above 0.
void limited(Name kernel, float limit) {
  if (!(limit > 0 && std::isfinite(limit))) refuse(kernel, fmt::format("the limit is {}", limit));
}

}  // namespace

void check(Name kernel, const SoftmaxCrossEntropy& of) {
  labelled(kernel, of.logits, of.labels);
  weights(kernel, of.rows, of.logits);
  if (of.dlogits.defined()) same(kernel, of.dlogits, of.logits);
}

void check(Name kernel, const Softmax& of) { alike(kernel, {of.logits, of.probabilities}); }
void check(Name kernel, const SoftmaxBackward& of) { alike(kernel, {of.p, of.dy, of.dx}); }

void check(Name kernel, const SoftCrossEntropy& of) {
  ranked(kernel, "logits", of.logits, 2);
  same(kernel, of.targets, of.logits);
  if (of.dlogits.defined()) same(kernel, of.dlogits, of.logits);
  weights(kernel, of.rows, of.logits);
}

void check(Name kernel, const ElementLosses& of) {
  const auto& [loss, x, targets, dx, label_smoothing, rows, sums] = of;
  tensor(kernel, "x", x);
  numbers_or_classes(kernel, "targets", targets);
  need(targets.shape.rank() > 0 && targets.shape[0] == x.shape[0] && targets.elements() == x.elements(), kernel,
       "there must be a target for each element", targets, x);
  if (dx.defined()) same(kernel, dx, x);
  weights(kernel, rows, x);
}

void check(Name kernel, const CosineLoss& of) {
  const TensorView& x = of.x;
  same(kernel, of.targets, x);
  if (of.dx.defined()) same(kernel, of.dx, x);
  if (x.shape.rank() < 2) {
    refuse(kernel, fmt::format("x has shape {}, it must have rows of vectors", x.shape.to_string()));
  }
  weights(kernel, of.rows, x);
}

// A scalar would be the sum or mean of a batch that may not be the whole one.
void check(Name kernel, const AddLosses& of) {
  if (of.losses.defined() && of.losses.shape.rank() != 1) {
    refuse(kernel,
           fmt::format("losses of shape {}; one number an example is needed", of.losses.shape.to_string()));
  }
  tensor(kernel, "losses", of.losses);
  weights(kernel, of.rows, of.losses);
}

void check(Name kernel, const CountTop& of) {
  if (of.k < 1) refuse(kernel, fmt::format("the {} largest are asked for, it must be at least 1", of.k));
  classes(kernel, of.x, of.labels);
  weights(kernel, of.rows, of.x);
}

void check(Name kernel, const CountConfusions& of) {
  classes(kernel, of.x, of.labels);
  counters(kernel, of.counts);
  const std::int64_t square = of.x.shape.back();
  need(of.counts.shape == Shape{square, square}, kernel, "counts must be a square of x's classes", of.counts,
       of.x);
}

void check(Name kernel, const CountScores& of) {
  const auto& [x, labels, counts, buckets, scalars] = of;
  ranked(kernel, "x", x, 2);
  numbers_or_classes(kernel, "labels", labels);
  const bool by_row = labels.dtype == DType::kI64 && labels.shape.rank() == 1;
  need(labels.shape.rank() > 0 && labels.shape[0] == x.shape[0] && (by_row || labels.elements() == x.elements()),
       kernel, "there must be a label for each element, or a class number for each row", labels, x);
  if (buckets.count < 2) refuse(kernel, fmt::format("{} buckets, there must be 2 or more", buckets.count));
  counters(kernel, counts);
  need(counts.shape == Shape{x.shape[1], buckets.count, 2}, kernel, "counts must be (columns, buckets, 2)", counts,
       x);
}

void check(Name kernel, const ExampleWeights& of) {
  const auto& [labels, given, weights, by_class] = of;
  ranked(kernel, "weights", weights, 1);
  if (given.defined()) vector_of(kernel, "the given weights", given, weights.elements());
  if (by_class.empty()) refuse(kernel, "there is no class with a weight");
  numbers_or_classes(kernel, "labels", labels);
  const bool one = labels.dtype == DType::kF32 || labels.elements() == weights.elements();
  need(one && labels.shape.rank() > 0 && labels.shape[0] == weights.shape[0], kernel,
       "there must be a label for each row", labels, weights);
}

void check(Name kernel, const Adam& of) {
  updated(kernel, of.parameters);
  for (const TensorView& view : {of.gradients, of.first_moment, of.second_moment}) {
    same(kernel, view, of.parameters.values);
  }
  within(kernel, of.ranges, of.parameters.values);
}

void check(Name kernel, const Sgd& of) {
  updated(kernel, of.parameters);
  same(kernel, of.gradients, of.parameters.values);
  const bool kept = std::ranges::any_of(of.ranges, [](const auto& range) { return range.options.momentum != 0; });
  if (kept) same(kernel, of.velocity, of.parameters.values);
  within(kernel, of.ranges, of.parameters.values);
}

void check(Name kernel, const Muon& of) {
  group(kernel, of.options.group);
  if (of.options.iterations < 0) refuse(kernel, fmt::format("{} iterations", of.options.iterations));
  for (const MuonMatrix& matrix : of.matrices) {
    alike(kernel, {matrix.parameters, matrix.gradients, matrix.velocity});
    updated(kernel, {matrix.parameters, matrix.rounded});
    if (matrix.parameters.shape.rank() >= 2) continue;
    refuse(kernel, fmt::format("a parameter of shape {} is no matrix", matrix.parameters.shape.to_string()));
  }
}

void check(Name kernel, const AddSquares& of) { tensor(kernel, "x", of.x); }
void check(Name kernel, const ClipFactor& of) { limited(kernel, of.max_norm); }

void check(Name kernel, const Clamp& of) {
  tensor(kernel, "x", of.x);
  limited(kernel, of.limit);
}
void check(Name kernel, const Average& of) { alike(kernel, {of.weights, of.average}); }

void check(Name kernel, const LookAhead& of) {
  updated(kernel, of.parameters);
  same(kernel, of.slow, of.parameters.values);
}

}  // namespace headrace::kernel
