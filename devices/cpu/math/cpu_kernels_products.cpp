// The functions of the CPU's table for dense layers and convolutions.
#include <bit>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cpu/math/convolutions.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/onednn.h"
#include "headrace/devices/cpu/math/onednn_products.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {
namespace {

using dnnl::memory;

constexpr std::int64_t kBatchedKey = -1;  // first in a plan's key; dense products and convolutions have others

// The matrices of an operand or the result, in the type that the primitive sees.
struct BatchedSide {
  MatrixBatch batch;
  bool transposed = false;
  memory::data_type type = memory::data_type::f32;

  memory::desc layout() const {
    const memory::dims by_rows{batch.row_step, 1}, by_columns{1, batch.row_step};
    return transposed ? memory::desc({batch.columns, batch.rows}, type, by_columns)
                      : memory::desc({batch.rows, batch.columns}, type, by_rows);
  }
  // Returns the place of a matrix within the tensor at `place`.
  Place matrix(const Place& place, std::int64_t outer, std::int64_t inner) const {
    const auto elements = static_cast<std::size_t>(outer * batch.outer_step + inner * batch.inner_step);
    const std::size_t bytes = elements * memory::data_type_size(type);
    if (place.pointer == nullptr) return {.offset = place.offset + bytes};
    return {.pointer = static_cast<std::byte*>(place.pointer) + bytes};
  }
  void add_to(OneDnn::Key& key) const {
    key.insert(key.end(),
               {batch.rows, batch.columns, batch.row_step, transposed, static_cast<std::int64_t>(type)});
  }
};

dnnl::primitive_attr batched_attributes(float alpha) {
  dnnl::primitive_attr with = attributes();
  if (alpha == 1.0F) return with;
  dnnl::post_ops after;
  after.append_eltwise(1.0F, dnnl::algorithm::eltwise_linear, alpha, 0.0F);
  with.set_post_ops(after);
  return with;
}

std::shared_ptr<const OneDnnPlan> batched_plan(OneDnn& onednn, const BatchedSide& a, const BatchedSide& b,
                                               float alpha, const BatchedSide& result) {
  OneDnn::Key key{kBatchedKey, std::bit_cast<std::int32_t>(alpha)};
  for (const BatchedSide* side : {&a, &b, &result}) side->add_to(key);
  return onednn.plan(key, [&] {
    OneDnnPlan plan;
    plan.source = a.layout();
    plan.weights = b.layout();
    plan.result = result.layout();
    const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(plan.source, plan.weights, plan.result),
                                              batched_attributes(alpha), onednn.engine());
    plan.scratchpad = chosen.scratchpad_desc();
    plan.primitive = dnnl::matmul(chosen);
    return plan;
  });
}

Operand operand_of(const TensorView& view) { return {.place = {.pointer = view.data}, .type = view.dtype}; }

// Each matrix is one thread's work, so that no bit depends on the number of threads.
BoundKernel batched_matmul(OneDnn& onednn, const Kernels::Matrices& a, const Kernels::Matrices& b, float alpha,
                           const Kernels::Matrices& result, Precision precision) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const auto input = [&](const TensorView& view) {
    return add_input(*program, onednn, precision, operand_of(view), view.elements());
  };
  const Place from_a = input(a.tensor), from_b = input(b.tensor);
  const Result to(*program, onednn, precision, operand_of(result.tensor), result.tensor.elements());
  const memory::data_type inputs = input_type(onednn, precision);
  const BatchedSide of_a{matrix_batch(a), a.transposed, inputs}, of_b{matrix_batch(b), b.transposed, inputs},
      of_result{matrix_batch(result), false, to.type()};
  const auto plan = batched_plan(onednn, of_a, of_b, alpha, of_result);
  std::vector<std::vector<OneDnnProgram::Argument>> calls;
  for (std::int64_t outer = 0; outer < of_result.batch.outer; ++outer) {
    for (std::int64_t inner = 0; inner < of_result.batch.inner; ++inner) {
      calls.push_back({{DNNL_ARG_SRC, plan->source, of_a.matrix(from_a, outer, inner)},
                       {DNNL_ARG_WEIGHTS, plan->weights, of_b.matrix(from_b, outer, inner)},
                       {DNNL_ARG_DST, plan->result, of_result.matrix(to.place(), outer, inner)},
                       {DNNL_ARG_SCRATCHPAD, plan->scratchpad, program->reserve(plan->scratchpad.get_size())}});
    }
  }
  program->add_single_threaded(plan->primitive, calls);
  to.finish(*program);
  return program;
}

DenseShape dense_shape(const TensorView& x, const TensorView& weights, Precision precision) {
  return {.rows = x.shape[0], .inputs = x.shape[1], .outputs = weights.shape[0], .precision = precision};
}

ConvShape conv_shape(const TensorView& x, const TensorView& weights, const TensorView& y,
                     const ConvOptions& options) {
  return {.images = x.shape[0],
          .height = x.shape[1],
          .width = x.shape[2],
          .channels = x.shape[3],
          .out_height = y.shape[1],
          .out_width = y.shape[2],
          .outputs = y.shape[3],
          .kernel_height = weights.shape[1],
          .kernel_width = weights.shape[2],
          .options = options};
}

Operand operand(const TensorView& view) noexcept { return {.place = {.pointer = view.data}, .type = view.dtype}; }

void submit_column_sums(Stream& stream, const char* kernel, const TensorView& matrix, const TensorView& sums) {
  if (!sums.defined()) return;
  check::same(kernel, matrix, matrix, kHalf);
  check::channels(kernel, sums, matrix);
  submit(stream, [=] {
    with_type(matrix, [&]<typename T>(T) {
      cpu::column_sums(matrix.as<T>(), f32(sums), matrix.elements() / sums.elements(), sums.elements());
    });
  });
}

}  // namespace

void CpuKernels::dense_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                               const TensorView& bias, const TensorView& y, Activation activation,
                               Precision precision) {
  check::fused("dense_forward", activation);
  check::dense("dense_forward", x, weights, bias, y, kHalf, check::half_weights(precision));
  submit(stream, headrace::dense_forward(onednn_, dense_shape(x, weights, precision), operand(x), operand(weights),
                                         f32(bias), operand(y), activation));
}

void CpuKernels::dense_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                                     const TensorView& dx, Precision precision) {
  check::dense("dense_backward_data", dx, weights, {}, dy, kHalf, check::half_weights(precision));
  submit(stream, headrace::dense_backward_data(onednn_, dense_shape(dx, weights, precision), operand(dy),
                                               operand(weights), operand(dx)));
}

void CpuKernels::dense_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                        const TensorView& dweights, const TensorView& dbias, Precision precision) {
  check::dense("dense_backward_weights", x, dweights, dbias, dy, kHalf);
  submit(stream, headrace::dense_backward_weights(onednn_, dense_shape(x, dweights, precision), operand(x),
                                                  operand(dy), f32(dweights), f32(dbias)));
}

void CpuKernels::batched_matmul(Stream& stream, const Matrices& a, const Matrices& b, float alpha,
                                const Matrices& result, Precision precision) {
  check::batched_matmul("batched_matmul", a, b, result, kHalf);
  submit(stream, cpu::batched_matmul(onednn_, a, b, alpha, result, precision));
}

void CpuKernels::conv_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                              const TensorView& bias, const TensorView& y, const ConvOptions& options,
                              Activation activation) {
  check::fused("conv_forward", activation);
  check::convolution("conv_forward", x, weights, bias, y, options, kHalf, check::half_weights(options.precision));
  submit(stream, headrace::conv_forward(onednn_, conv_shape(x, weights, y, options), operand(x), operand(weights),
                                        f32(bias), operand(y), activation));
}

void CpuKernels::conv_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                                    const TensorView& dx, const ConvOptions& options) {
  check::convolution("conv_backward_data", dx, weights, {}, dy, options, kHalf,
                     check::half_weights(options.precision));
  submit(stream, headrace::conv_backward_data(onednn_, conv_shape(dx, weights, dy, options), operand(dy),
                                              operand(weights), operand(dx)));
}

void CpuKernels::conv_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                       const TensorView& dweights, const TensorView& dbias,
                                       const ConvOptions& options) {
  if (!dweights.defined()) return submit_column_sums(stream, "conv_backward_weights", dy, dbias);
  check::convolution("conv_backward_weights", x, dweights, dbias, dy, options, kHalf);
  submit(stream, headrace::conv_backward_weights(onednn_, conv_shape(x, dweights, dy, options), operand(x),
                                                 operand(dy), f32(dweights), f32(dbias)));
}

void CpuKernels::conv_bias_backward(Stream& stream, const TensorView& x, const TensorView& weights,
                                    const TensorView& bias, const TensorView& dy, const TensorView& dbias,
                                    const ConvOptions& options, Activation activation) {
  check::conv_bias("conv_bias_backward", x, weights, bias, dy, dbias, options, kHalf,
                   check::half_weights(options.precision));
  check::recomputed("conv_bias_backward", weights, options.groups == 1);
  submit(stream, [=, shape = conv_shape(x, weights, dy, options)] {
    with_type(x, [&]<typename T>(T) {
      with_type(weights, [&]<typename W>(W) {
        const cpu::ConvBiasOperands<T, W> operands{x.as<T>(), weights.as<W>(), f32(bias), dy.as<T>()};
        cpu::conv_bias_backward(shape, operands, activation, f32(dbias));
      });
    });
  });
}

void CpuKernels::depthwise_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                                   const TensorView& bias, const TensorView& y, const ConvOptions& options,
                                   Activation activation) {
  check::fused("depthwise_forward", activation);
  check::depthwise("depthwise_forward", x, weights, bias, y, options, kHalf);
  submit(stream, [=, shape = conv_shape(x, weights, y, options)] {
    with_type(x, [&]<typename T>(T) {
      cpu::depthwise_forward(shape, x.as<T>(), f32(weights), f32(bias), activation, y.as<T>());
    });
  });
}

void CpuKernels::depthwise_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                                         const TensorView& dx, const ConvOptions& options) {
  check::depthwise("depthwise_backward_data", dx, weights, {}, dy, options, kHalf);
  submit(stream, [=, shape = conv_shape(dx, weights, dy, options)] {
    with_type(dx,
              [&]<typename T>(T) { cpu::depthwise_backward_data(shape, dy.as<T>(), f32(weights), dx.as<T>()); });
  });
}

void CpuKernels::depthwise_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                            const TensorView& dweights, const TensorView& dbias,
                                            const ConvOptions& options) {
  submit_column_sums(stream, "depthwise_backward_weights", dy, dbias);
  if (!dweights.defined()) return;
  check::depthwise("depthwise_backward_weights", x, dweights, dbias, dy, options, kHalf);
  submit(stream, [=, shape = conv_shape(x, dweights, dy, options)] {
    with_type(
        x, [&]<typename T>(T) { cpu::depthwise_backward_weights(shape, x.as<T>(), dy.as<T>(), f32(dweights)); });
  });
}

}  // namespace headrace::cpu
