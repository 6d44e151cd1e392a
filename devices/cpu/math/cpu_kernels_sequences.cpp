// The functions of the CPU's table for rows of features: layer normalisation, embedding and attention's mask.
#include <algorithm>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/cpu_submission.h"
#include "headrace/devices/cpu/math/embedding.h"
#include "headrace/devices/cpu/math/layer_norm.h"

namespace headrace::cpu {
namespace {

LayerNormRows layer_norm_rows(const TensorView& x, const Kernels::LayerNorm& norm) {
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
    if (value(mask[s]) == 0.0F) scores[s] = Kernels::kMaskedScore;
  }
  std::fill(scores + visible, scores + positions, Kernels::kMaskedScore);
}

}  // namespace

void CpuKernels::mask_scores(Stream& stream, const TensorView& scores, const TensorView& mask, bool causal) {
  check::mask_scores("mask_scores", scores, mask);
  submit(stream, [=] {
    const std::int64_t queries = scores.shape[2], positions = scores.shape[3];
    const std::int64_t rows_each = scores.shape[1] * queries;
    with_type(mask, [&]<typename T>(T) {
      parallel_ranges(scores.shape[0] * rows_each, row_grain(positions),
                      [=](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t row = begin; row < end; ++row) {
                          const T* of = mask.defined() ? mask.as<T>() + row / rows_each * positions : nullptr;
                          const std::int64_t visible = causal ? std::min(positions, row % queries + 1) : positions;
                          mask_row(f32(scores) + row * positions, of, positions, visible);
                        }
                      });
    });
  });
}

void CpuKernels::layer_norm_forward(Stream& stream, const TensorView& x, const LayerNorm& norm,
                                    const TensorView& y) {
  check::layer_norm("layer_norm_forward", x, norm);
  check::same("layer_norm_forward", y, x);
  submit(stream, [=] { cpu::layer_norm_forward(layer_norm_rows(x, norm), norm.epsilon, f32(y)); });
}

void CpuKernels::layer_norm_backward(Stream& stream, const TensorView& x, const TensorView& dy,
                                     const LayerNorm& norm, const TensorView& dgamma, const TensorView& dbeta,
                                     const TensorView& dx) {
  check::layer_norm("layer_norm_backward", x, norm);
  check::same("layer_norm_backward", dy, x);
  if (dx.defined()) check::same("layer_norm_backward", dx, x);
  check::norm_gradients("layer_norm_backward", dgamma, dbeta, x);
  submit(stream, [=] {
    const LayerNormRows of = layer_norm_rows(x, norm);
    cpu::layer_norm_sums(of, f32(dy), f32(dgamma), f32(dbeta));
    if (dx.defined()) cpu::layer_norm_input_gradient(of, f32(dy), f32(dx));
  });
}

void CpuKernels::embed(Stream& stream, const TensorView& ids, const TensorView& table, const TensorView& y) {
  check::embedding("embed", ids, table, y);
  submit(stream, [=] {
    cpu::embed({.rows = y.shape[0], .columns = y.shape[1], .entries = table.shape[0], .ids = f32(ids)}, f32(table),
               f32(y));
  });
}

void CpuKernels::embed_backward(Stream& stream, const TensorView& ids, const TensorView& dy,
                                const TensorView& dtable) {
  check::embedding("embed_backward", ids, dtable, dy);
  submit(stream, [=] {
    cpu::embed_backward({.rows = dy.shape[0], .columns = dy.shape[1], .entries = dtable.shape[0], .ids = f32(ids)},
                        f32(dy), f32(dtable));
  });
}

}  // namespace headrace::cpu
