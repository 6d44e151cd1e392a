// What the updates of parameters are given.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "headrace/devices/common/kernel_checks.h"

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

namespace headrace::check {

void group(const char* kernel, int group) {
  if (group >= 0 && group < kMaxParameterGroups) return;
  refuse(kernel, fmt::format("parameter group {} does not exist, there are {}", group, kMaxParameterGroups));
}

namespace {

void updated(const char* kernel, const Parameters& parameters) {
  const auto& [values, rounded] = parameters;
  same(kernel, values, values);
  if (!rounded.defined()) return;
  need(rounded.shape == values.shape, kernel, "the copy of parameters must have their shape", rounded, values);
  if (rounded.dtype == DType::kBF16) return;
  refuse(kernel, fmt::format("the copy of parameters is {}, it must be bfloat16", to_string(rounded.dtype)));
}

template <typename Options>
void within(const char* kernel, std::span<const UpdateRange<Options>> ranges, const TensorView& arena) {
  std::int64_t before = 0;
  for (const auto& [begin, end, options] : ranges) {
    group(kernel, options.group);
    if (!std::ranges::is_sorted(std::array{before, begin, end, arena.elements()})) {
      refuse(kernel, fmt::format("range [{}, {}) after {} of {} elements", begin, end, before, arena.elements()));
    }
    before = end;
  }
}

}  // namespace

void adam(const Parameters& parameters, const TensorView& gradients, const TensorView& first_moment,
          const TensorView& second_moment, std::span<const UpdateRange<AdamOptions>> ranges) {
  updated("adam", parameters);
  for (const TensorView& view : {gradients, first_moment, second_moment}) same("adam", view, parameters.values);
  within("adam", ranges, parameters.values);
}

void sgd(const Parameters& parameters, const TensorView& gradients, const TensorView& velocity,
         std::span<const UpdateRange<SgdOptions>> ranges) {
  updated("sgd", parameters);
  same("sgd", gradients, parameters.values);
  const bool kept = std::ranges::any_of(ranges, [](const auto& range) { return range.options.momentum != 0; });
  if (kept) same("sgd", velocity, parameters.values);
  within("sgd", ranges, parameters.values);
}

void muon(std::span<const MuonMatrix> matrices, const MuonOptions& options) {
  group("muon", options.group);
  if (options.iterations < 0) refuse("muon", fmt::format("{} iterations", options.iterations));
  for (const MuonMatrix& matrix : matrices) {
    for (const TensorView& view : {matrix.parameters, matrix.gradients, matrix.velocity}) {
      same("muon", view, matrix.parameters);
    }
    updated("muon", {matrix.parameters, matrix.rounded});
    if (matrix.parameters.shape.rank() >= 2) continue;
    refuse("muon", fmt::format("a parameter of shape {} is no matrix", matrix.parameters.shape.to_string()));
  }
}

void look_ahead(const Parameters& parameters, const TensorView& slow) {
  updated("look_ahead", parameters);
  same("look_ahead", slow, parameters.values);
}

void limit(const char* kernel, float limit) {
  if (!(limit > 0 && std::isfinite(limit))) refuse(kernel, fmt::format("the limit is {}", limit));
}

}  // namespace headrace::check
