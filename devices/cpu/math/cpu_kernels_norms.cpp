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

void CpuKernels::run(Stream& stream, const kernel::BatchNormTrain& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::batch_norm_train(norm_rows(of.x, of.scalars->rows), of.x.as<T>(), of.norm, of.y.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::BatchNormInfer& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::batch_norm_infer(norm_rows(of.x, of.x.shape[0]), of.x.as<T>(), of.norm, of.y.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::BatchNormBackward& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::batch_norm_backward(norm_rows(of.x, of.scalars->rows), of.x.as<T>(), of.dy.as<T>(), of.norm,
                               f32(of.dgamma), f32(of.dbeta), of.dx.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::PackStatistics& of) {
  submit(stream, [=] { cpu::pack_statistics(norm_rows(of.x, of.scalars->rows), of.norm, f32(of.row)); });
}

void CpuKernels::run(Stream& stream, const kernel::JoinStatistics& of) {
  submit(stream, [=] {
    cpu::join_statistics(f32(of.statistics), of.statistics.shape[0], of.replica, of.norm, f32(of.variance),
                         f32(of.inverse_counts));
  });
}

void CpuKernels::run(Stream& stream, const kernel::JoinInputGradient& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::join_input_gradient(norm_rows(of.x, of.scalars->rows), of.x.as<T>(), of.norm, f32(of.own),
                               f32(of.joint), f32(of.inverse_counts), of.dx.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::MaxPoolBatchNormTrain& of) {
  run(stream, kernel::MaxPoolForward{of.x, of.pooled, of.pool.argmax, of.pool.options});
  run(stream, kernel::BatchNormTrain{of.pooled, of.y, of.norm, of.scalars});
}

void CpuKernels::run(Stream& stream, const kernel::MaxPoolBatchNormBackward& of) {
  run(stream, kernel::BatchNormBackward{of.pooled, of.dy, of.dgamma, of.dbeta, of.dy, of.norm, of.scalars});
  run(stream, kernel::MaxPoolBackward{of.dy, of.pool.argmax, of.dx, of.pool.options});
}

}  // namespace headrace::cpu
