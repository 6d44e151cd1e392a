// The functions of the CPU's table for batch normalisation, with the statistics of one replica or several.
#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/math/batch_norm.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"

namespace headrace::cpu {
namespace {

// Returns the batch as a matrix of channels; its first `examples` examples are real.
NormRows norm_rows(const TensorView& x, std::int64_t examples) {
  const std::int64_t channels = x.shape.back();
  const std::int64_t rows = x.elements() / channels;
  return {.real = examples * (rows / x.shape[0]), .rows = rows, .channels = channels};
}

}  // namespace

void CpuKernels::batch_norm_train(Stream& stream, const TensorView& x, const BatchNorm& norm,
                                  const StepScalars* scalars, const TensorView& y) {
  check::batch_norm_training("batch_norm_train", x, norm, kHalf);
  check::same("batch_norm_train", y, x, kHalf);
  submit(stream, [=] {
    with_type(
        x, [&]<typename T>(T) { cpu::batch_norm_train(norm_rows(x, scalars->rows), x.as<T>(), norm, y.as<T>()); });
  });
}

void CpuKernels::batch_norm_infer(Stream& stream, const TensorView& x, const BatchNorm& norm,
                                  const TensorView& y) {
  check::batch_norm("batch_norm_infer", x, norm, kHalf);
  check::same("batch_norm_infer", y, x, kHalf);
  submit(stream, [=] {
    with_type(x,
              [&]<typename T>(T) { cpu::batch_norm_infer(norm_rows(x, x.shape[0]), x.as<T>(), norm, y.as<T>()); });
  });
}

void CpuKernels::batch_norm_backward(Stream& stream, const TensorView& x, const TensorView& dy,
                                     const BatchNorm& norm, const StepScalars* scalars, const TensorView& dgamma,
                                     const TensorView& dbeta, const TensorView& dx) {
  check::batch_norm_training("batch_norm_backward", x, norm, kHalf);
  for (const TensorView& view : {dy, dx}) check::same("batch_norm_backward", view, x, kHalf);
  check::norm_gradients("batch_norm_backward", dgamma, dbeta, x);
  submit(stream, [=] {
    with_type(x, [&]<typename T>(T) {
      cpu::batch_norm_backward(norm_rows(x, scalars->rows), x.as<T>(), dy.as<T>(), norm, f32(dgamma), f32(dbeta),
                               dx.as<T>());
    });
  });
}

void CpuKernels::pack_statistics(Stream& stream, const TensorView& x, const BatchNorm& norm,
                                 const StepScalars* scalars, const TensorView& row) {
  check::batch_norm_training("pack_statistics", x, norm, kHalf);
  check::numbers("pack_statistics", "row", row, 1 + 2 * x.shape.back());
  submit(stream, [=] { cpu::pack_statistics(norm_rows(x, scalars->rows), norm, f32(row)); });
}

void CpuKernels::join_statistics(Stream& stream, const TensorView& statistics, int replica, const BatchNorm& norm,
                                 const TensorView& variance, const TensorView& inverse_counts) {
  check::statistics("join_statistics", statistics, replica, norm);
  check::numbers("join_statistics", "variance", variance, norm.saved_mean.elements());
  check::numbers("join_statistics", "inverse_counts", inverse_counts, 2);
  submit(stream, [=] {
    cpu::join_statistics(f32(statistics), statistics.shape[0], replica, norm, f32(variance), f32(inverse_counts));
  });
}

void CpuKernels::join_input_gradient(Stream& stream, const TensorView& x, const BatchNorm& norm,
                                     const TensorView& own, const TensorView& joint,
                                     const TensorView& inverse_counts, const StepScalars* scalars,
                                     const TensorView& dx) {
  check::batch_norm_training("join_input_gradient", x, norm, kHalf);
  check::same("join_input_gradient", dx, x, kHalf);
  for (const TensorView& sums : {own, joint}) {
    check::numbers("join_input_gradient", "sums", sums, 2 * x.shape.back());
  }
  check::numbers("join_input_gradient", "inverse_counts", inverse_counts, 2);
  submit(stream, [=] {
    with_type(x, [&]<typename T>(T) {
      cpu::join_input_gradient(norm_rows(x, scalars->rows), x.as<T>(), norm, f32(own), f32(joint),
                               f32(inverse_counts), dx.as<T>());
    });
  });
}

}  // namespace headrace::cpu
