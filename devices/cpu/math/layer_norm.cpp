#include "headrace/devices/cpu/math/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

constexpr std::int64_t kStrip = 64;  // columns that are summed at once

void normalize_row(const LayerNormRows& of, std::int64_t row, float epsilon, float* y) {
  const float* x = of.x + row * of.columns;
  const auto count = static_cast<double>(of.columns);
  double sum = 0, squares = 0;
  for (std::int64_t c = 0; c < of.columns; ++c) sum += static_cast<double>(x[c]);
  const double mean = sum / count;
  for (std::int64_t c = 0; c < of.columns; ++c) {
    const double distance = static_cast<double>(x[c]) - mean;
    squares += distance * distance;
  }
  const auto center = static_cast<float>(mean);
  const auto scale = static_cast<float>(1 / std::sqrt(squares / count + static_cast<double>(epsilon)));
  of.mean[row] = center;
  of.inv_std[row] = scale;
  for (std::int64_t c = 0; c < of.columns; ++c) {
    const float normalized = (x[c] - center) * scale;
    const float scaled = of.gamma == nullptr ? normalized : normalized * of.gamma[c];
    y[row * of.columns + c] = of.beta == nullptr ? scaled : scaled + of.beta[c];
  }
}

void sum_strip(const LayerNormRows& of, const float* dy, std::int64_t begin, std::int64_t end, float* dgamma,
               float* dbeta) {
  double gammas[kStrip] = {}, betas[kStrip] = {};
  for (std::int64_t row = 0; row < of.rows; ++row) {
    for (std::int64_t c = begin; c < end; ++c) {
      const std::int64_t at = row * of.columns + c;
      const auto slope = static_cast<double>(dy[at]);
      gammas[c - begin] += slope * static_cast<double>((of.x[at] - of.mean[row]) * of.inv_std[row]);
      betas[c - begin] += slope;
    }
  }
  for (std::int64_t c = begin; c < end; ++c) {
    if (dgamma != nullptr) dgamma[c] = static_cast<float>(gammas[c - begin]);
    if (dbeta != nullptr) dbeta[c] = static_cast<float>(betas[c - begin]);
  }
}

// With n the normalized row and g = dy gamma: dx = (g - mean(g) - n mean(g n)) / std.
void gradient_row(const LayerNormRows& of, std::int64_t row, const float* dy, float* dx) {
  const std::int64_t first = row * of.columns;
  const float mean = of.mean[row], scale = of.inv_std[row];
  const auto scaled = [&](std::int64_t c) {
    return of.gamma == nullptr ? dy[first + c] : dy[first + c] * of.gamma[c];
  };
  const auto normalized = [&](std::int64_t c) { return (of.x[first + c] - mean) * scale; };
  double sum = 0, weighted = 0;
  for (std::int64_t c = 0; c < of.columns; ++c) {
    sum += static_cast<double>(scaled(c));
    weighted += static_cast<double>(scaled(c)) * static_cast<double>(normalized(c));
  }
  const auto of_all = static_cast<float>(sum / static_cast<double>(of.columns));
  const auto of_slope = static_cast<float>(weighted / static_cast<double>(of.columns));
  for (std::int64_t c = 0; c < of.columns; ++c) {
    dx[first + c] = (scaled(c) - of_all - normalized(c) * of_slope) * scale;
  }
}

}  // namespace

void layer_norm_forward(const LayerNormRows& of, float epsilon, float* y) {
  parallel_ranges(of.rows, row_grain(4 * of.columns), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) normalize_row(of, row, epsilon, y);
  });
}

void layer_norm_sums(const LayerNormRows& of, const float* dy, float* dgamma, float* dbeta) {
  if (dgamma == nullptr && dbeta == nullptr) return;
  const std::int64_t strips = (of.columns + kStrip - 1) / kStrip;
  parallel_ranges(strips, row_grain(kStrip * of.rows), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t strip = begin; strip < end; ++strip) {
      sum_strip(of, dy, strip * kStrip, std::min(of.columns, (strip + 1) * kStrip), dgamma, dbeta);
    }
  });
}

void layer_norm_input_gradient(const LayerNormRows& of, const float* dy, float* dx) {
  parallel_ranges(of.rows, row_grain(4 * of.columns), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) gradient_row(of, row, dy, dx);
  });
}

}  // namespace headrace::cpu
