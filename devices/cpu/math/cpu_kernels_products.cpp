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
  kernel::MatrixBatch batch;
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

Operand operand(const TensorView& view) noexcept { return {.place = {.pointer = view.data}, .type = view.dtype}; }

// Each matrix is one thread's work, so that no bit depends on the number of threads.
BoundKernel batched_matmul(OneDnn& onednn, const kernel::BatchedMatmul& of) {
  auto program = std::make_shared<OneDnnProgram>(onednn);
  const auto input = [&](const TensorView& view) {
    return add_input(*program, onednn, of.precision, operand(view), view.elements());
  };
  const Place from_a = input(of.a.tensor), from_b = input(of.b.tensor);
  const TensorView& result = of.result.tensor;
  const Result to(*program, onednn, of.precision, operand(result), result.elements());
  const memory::data_type inputs = input_type(onednn, of.precision);
  const BatchedSide of_a{matrix_batch(of.a), of.a.transposed, inputs},
      of_b{matrix_batch(of.b), of.b.transposed, inputs}, of_result{matrix_batch(of.result), false, to.type()};
  const auto plan = batched_plan(onednn, of_a, of_b, of.alpha, of_result);
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

}  // namespace

void CpuKernels::run(Stream& stream, const kernel::DenseForward& of) {
  submit(stream, headrace::dense_forward(onednn_, dense_shape(of.x, of.weights, of.precision), operand(of.x),
                                         operand(of.weights), f32(of.bias), operand(of.y), of.activation));
}

void CpuKernels::run(Stream& stream, const kernel::DenseBackwardData& of) {
  submit(stream, headrace::dense_backward_data(onednn_, dense_shape(of.dx, of.weights, of.precision),
                                               operand(of.dy), operand(of.weights), operand(of.dx)));
}

void CpuKernels::run(Stream& stream, const kernel::DenseBackwardWeights& of) {
  submit(stream, headrace::dense_backward_weights(onednn_, dense_shape(of.x, of.dweights, of.precision),
                                                  operand(of.x), operand(of.dy), f32(of.dweights), f32(of.dbias)));
}

void CpuKernels::run(Stream& stream, const kernel::BatchedMatmul& of) {
  submit(stream, cpu::batched_matmul(onednn_, of));
}

void CpuKernels::run(Stream& stream, const kernel::ConvForward& of) {
  submit(stream, headrace::conv_forward(onednn_, conv_shape(of.x, of.weights, of.y, of.options), operand(of.x),
                                        operand(of.weights), f32(of.bias), operand(of.y), of.activation));
}

void CpuKernels::run(Stream& stream, const kernel::ConvBackwardData& of) {
  submit(stream, headrace::conv_backward_data(onednn_, conv_shape(of.dx, of.weights, of.dy, of.options),
                                              operand(of.dy), operand(of.weights), operand(of.dx)));
}

void CpuKernels::run(Stream& stream, const kernel::ConvBackwardWeights& of) {
  if (!of.dweights.defined()) return submit_column_sums(stream, of.dy, of.dbias);
  submit(stream, headrace::conv_backward_weights(onednn_, conv_shape(of.x, of.dweights, of.dy, of.options),
                                                 operand(of.x), operand(of.dy), f32(of.dweights), f32(of.dbias)));
}

}  // namespace headrace::cpu
