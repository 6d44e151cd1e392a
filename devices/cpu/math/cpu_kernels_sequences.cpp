// The functions of the CPU's table for rows of features: layer normalisation, embedding and attention's mask.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

struct LayerNormRows {
  std::int64_t rows = 0, columns = 0;
  const float* x = nullptr;
  const float *gamma = nullptr, *beta = nullptr;  // null: 1 and 0
  float *mean = nullptr, *inv_std = nullptr;      // by row, from forward to backward
};

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

void layer_norm_forward(const LayerNormRows& of, float epsilon, float* y) {
  parallel_ranges(of.rows, row_grain(4 * of.columns), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) normalize_row(of, row, epsilon, y);
  });
}

// Sums over rows in f64, in their order; each result may be null.
void layer_norm_sums(const LayerNormRows& of, const float* dy, float* dgamma, float* dbeta) {
  if (dgamma == nullptr && dbeta == nullptr) return;
  const std::int64_t strips = (of.columns + kStrip - 1) / kStrip;
  parallel_ranges(strips, row_grain(kStrip * of.rows), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t strip = begin; strip < end; ++strip) {
      sum_strip(of, dy, strip * kStrip, std::min(of.columns, (strip + 1) * kStrip), dgamma, dbeta);
    }
  });
}

// dx may be dy.
void layer_norm_input_gradient(const LayerNormRows& of, const float* dy, float* dx) {
  parallel_ranges(of.rows, row_grain(4 * of.columns), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) gradient_row(of, row, dy, dx);
  });
}

struct EmbeddedRows {
  std::int64_t rows = 0, columns = 0;
  std::int64_t entries = 0;  // of the table
  const float* ids = nullptr;
};

// Returns -1 if it is no entry.
std::int64_t entry_of(const EmbeddedRows& of, std::int64_t row) {
  const float id = of.ids[row];
  return id >= 0 && id < static_cast<float>(of.entries) ? static_cast<std::int64_t>(id) : -1;
}

// Writes a row of NaN for an index outside the table.
void embed(const EmbeddedRows& of, const float* table, float* y) {
  parallel_ranges(of.rows, row_grain(of.columns), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t entry = entry_of(of, row);
      float* to = y + row * of.columns;
      if (entry < 0) {
        std::fill_n(to, of.columns, std::numeric_limits<float>::quiet_NaN());
      } else {
        std::copy_n(table + entry * of.columns, of.columns, to);
      }
    }
  });
}

// A thread has a range of entries: it adds the rows of its own ones.
// Adds the rows of dy in order: the same bits for any number of threads.
void embed_backward(const EmbeddedRows& of, const float* dy, float* dtable) {
  const std::int64_t grain = std::max<std::int64_t>(1, of.entries / (1 + of.rows * of.columns / row_grain(1)));
  parallel_ranges(of.entries, grain, [=](std::int64_t begin, std::int64_t end) {
    std::fill(dtable + begin * of.columns, dtable + end * of.columns, 0.0F);
    for (std::int64_t row = 0; row < of.rows; ++row) {
      const std::int64_t entry = entry_of(of, row);
      if (entry < begin || entry >= end) continue;
      float* into = dtable + entry * of.columns;
      const float* from = dy + row * of.columns;
      for (std::int64_t c = 0; c < of.columns; ++c) into[c] += from[c];
    }
  });
}

LayerNormRows layer_norm_rows(const TensorView& x, const kernel::LayerNorm& norm) {
  return {.rows = x.shape[0],
          .columns = x.shape[1],
          .x = f32(x),
          .gamma = f32(norm.gamma),
          .beta = f32(norm.beta),
          .mean = f32(norm.saved_mean),
          .inv_std = f32(norm.saved_inv_std)};
}

// `mask` is the example's, or null. T is float or BFloat16.
template <typename T>
void mask_row(float* scores, const T* mask, std::int64_t positions, std::int64_t visible) {
  for (std::int64_t s = 0; mask != nullptr && s < visible; ++s) {
    if (value(mask[s]) == 0.0F) scores[s] = kernel::kMaskedScore;
  }
  std::fill(scores + visible, scores + positions, kernel::kMaskedScore);
}

}  // namespace

void CpuKernels::run(Stream& stream, const kernel::MaskScores& of) {
  submit(stream, [=] {
    const std::int64_t queries = of.scores.shape[2], positions = of.scores.shape[3];
    const std::int64_t rows_each = of.scores.shape[1] * queries;
    with_type(of.mask, [&]<typename T>(T) {
      parallel_ranges(
          of.scores.shape[0] * rows_each, row_grain(positions), [=](std::int64_t begin, std::int64_t end) {
            for (std::int64_t row = begin; row < end; ++row) {
              const T* mask = of.mask.defined() ? of.mask.as<T>() + row / rows_each * positions : nullptr;
              const std::int64_t visible = of.causal ? std::min(positions, row % queries + 1) : positions;
              mask_row(f32(of.scores) + row * positions, mask, positions, visible);
            }
          });
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::LayerNormForward& of) {
  submit(stream, [=] { cpu::layer_norm_forward(layer_norm_rows(of.x, of.norm), of.norm.epsilon, f32(of.y)); });
}

void CpuKernels::run(Stream& stream, const kernel::LayerNormBackward& of) {
  submit(stream, [=] {
    const LayerNormRows rows = layer_norm_rows(of.x, of.norm);
    cpu::layer_norm_sums(rows, f32(of.dy), f32(of.dgamma), f32(of.dbeta));
    if (of.dx.defined()) cpu::layer_norm_input_gradient(rows, f32(of.dy), f32(of.dx));
  });
}

void CpuKernels::run(Stream& stream, const kernel::Embed& of) {
  submit(stream, [=] {
    cpu::embed({.rows = of.y.shape[0], .columns = of.y.shape[1], .entries = of.table.shape[0], .ids = f32(of.ids)},
               f32(of.table), f32(of.y));
  });
}

void CpuKernels::run(Stream& stream, const kernel::EmbedBackward& of) {
  submit(stream, [=] {
    cpu::embed_backward(
        {.rows = of.dy.shape[0], .columns = of.dy.shape[1], .entries = of.dtable.shape[0], .ids = f32(of.ids)},
        f32(of.dy), f32(of.dtable));
  });
}

}  // namespace headrace::cpu
